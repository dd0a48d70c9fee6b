"""Figures with several values of a key: seeds are united, or one line says what to do."""

from dataclasses import replace

import in_process
import numpy as np
import pandas as pd
import pytest
from samples import samples

from runner.compose.composing import hydra_ready
from runner.compose.launching import launch
from runner.compose.orders import compose_figures, compose_order, paper_figure
from runner.core.catalogue import figure_names, figure_study, paper_folder, rows_of
from runner.core.errors import InputError
from runner.results.claims import claims_of, lacking
from runner.results.evidence import Always
from runner.results.figure import Figure
from runner.results.rows import NoRows, Present
from runner.results.united import can_unite, unite, united_seeds
from runner.runs.run import Run, load

SMOKE = ("scale=smoke", "device=cpu")

REFUSED = [
    ("rank-fig3b", "chains=5,20", "rank-fig3b draws one value of chains: add -m"),
    ("rank-fig3b", "grids.smoke=[{chains: [5, 20]}]", "draws one value of chains: add -m"),
    ("rank-fig1", "replicates=2,3", "rank-fig1 draws one value of replicates: add -m"),
    ("rank-lemma3", "widths=[8],[16]", "give one list, widths=.8,16., or add -m for one figure"),
    ("fig4-training", "optimizer=sgd,adam", "fig4-training draws one value of optimizer"),
    ("fig4", "widths=[5,6],[6,7]", "same networks twice: two lists of widths have 6"),
    ("rank-norms", "depth=4,6", "rank-norms draws one value of depth in some of its runs: add -m"),
    ("constructions", "rank=1,2", "constructions draws one value of rank in some of its runs"),
    ("bottleneck-example20", "seed=1,2", "bottleneck-example20 has no randomness: omit seed"),
]
KNOWN = [
    ("fig4", "target_width=4,5", 4),
    ("fig4", "target_width=4", 2),
    ("rank-fig3a", "widths=[8],[16]", 2),
    ("rank-fig3b", "seed=1,2,3", 3),
    ("rank-fig1", "depth=4,6", 2),
]


@pytest.mark.parametrize(("figure", "word", "message"), REFUSED)
def test_values_that_a_drawing_does_not_keep_apart_are_refused_in_one_line(figure, word, message):
    with hydra_ready(), pytest.raises(InputError, match=message) as refused:
        compose_order([f"figure={figure}", *SMOKE, word])
    assert "\n" not in str(refused.value)
    with hydra_ready(), pytest.raises(InputError, match=message):
        compose_figures([figure], [*SMOKE, word])


@pytest.mark.parametrize(("figure", "word", "runs"), KNOWN)
def test_values_that_a_drawing_keeps_apart_are_one_figure(figure, word, runs):
    assert len(in_process.order_of(f"figure={figure}", *SMOKE, word).figures[0].runs) == runs


def test_with_m_there_is_a_figure_for_each_combination_of_values():
    words = (*SMOKE, "seed=51,52", "target_width=4,6")
    order = in_process.order_of("figure=fig4", *words, multirun=True)
    assert [figure.overrides[-2:] for figure in order.figures] == [
        (f"seed={seed}", f"target_width={d}") for seed in (51, 52) for d in (4, 6)
    ]
    assert len({figure.name for figure in order.figures}) == 4 and len(order.jobs) == 8
    single = paper_figure("fig4", [*SMOKE, "seed=52", "target_width=6"])
    assert order.figures[-1].name == single.name
    with hydra_ready():
        order = compose_figures(["rank-fig3b", "fig4"], [*SMOKE, "seed=51,52"], multirun=True)
    assert [figure.is_canonical for figure in order.figures] == [False, False, True, False]
    order = in_process.order_of("figure=rank-fig3b", *SMOKE, "chains=5", multirun=True)
    assert len(order.figures) == 1


def made(tmp_path, name, *words) -> Figure:
    """Compute a figure's runs; return the figure."""
    typed = (f"figure={name}", *SMOKE, f"outputs={tmp_path}", *words)
    with hydra_ready(typed):
        order = compose_order(list(typed))
        assert not launch(order)
    return order.figures[0]


def alone(figure: Figure) -> list[Figure]:
    """Return the figures of each seed of a figure."""
    seeds = sorted({run.config.seed for run in figure.runs})
    return [
        replace(figure, runs=tuple(r for r in figure.runs if r.config.seed == s)) for s in seeds
    ]


def measured(figure: Figure, tables: dict) -> dict:
    """Return what each rule of a figure measures: rows, or why there are none."""
    found = {}
    for claim in claims_of(figure.figure, figure.study):
        for number, rule in enumerate(claim.rules):
            try:
                with np.errstate(all="ignore"):
                    rows = lacking(claim, tables) or rule.quantity.measure(Present(tables))
            except NoRows as absent:
                rows = str(absent)
            found[claim.name, number] = rule, rows
    return found


def numbers_in(rows: pd.DataFrame, each: tuple[str, ...]) -> list[str]:
    """Return the sorted numbers with their points, as text with nine digits."""
    values = rows["value"] + 0.0  # -0 is 0: its sign depends on the order of a sum
    shown = rows[[*each]].assign(value=values)
    return sorted(shown.to_csv(index=False, float_format="%.9g").split()[1:])


def require_union(united: dict, parts: list[dict]) -> None:
    """Each rule has measured what it measures in the parts, as numbers of other networks."""
    for key, (rule, rows) in united.items():
        single = [part[key][1] for part in parts]
        if isinstance(rows, str):
            assert all(isinstance(part, str) for part in single), (key, rows)
            continue
        if any(isinstance(part, str) for part in single):
            continue  # two networks suffice where one does not
        counted = {"error", "count"} & {*rows}
        if not counted:
            of_parts = sum((numbers_in(part, rule.quantity.each) for part in single), [])
            assert numbers_in(rows, rule.quantity.each) == sorted(of_parts), key
        if isinstance(rule.comparison, Always) or not counted:
            replicates = [part["replicate"].nunique() for part in [rows, *single]]
            assert replicates[0] == sum(replicates[1:]), key
        else:
            assert rows["n"].sum() == sum(part["n"].sum() for part in single), key


@pytest.mark.parametrize("name", ["rank-fig3b", "rank-lemma7", "rank-fig8", "fig4"])
def test_a_figure_of_two_seeds_has_the_networks_of_both(tmp_path, name):
    figure = made(tmp_path, name, "seed=1,2", *["layers=100", "draws=20"] * (name != "fig4"))
    parts = alone(figure)
    assert len(parts) == 2 and united_seeds(figure.runs) == [1, 2]
    require_union(
        measured(figure, figure.tables()), [measured(part, part.tables()) for part in parts]
    )
    assert " of each of the seeds 1 and 2" in figure.header().what
    assert "of each of the seeds 1 and 2; scale: smoke" in " ".join(figure.caption().split())
    figure.register_rules()
    assert figure.provenance()["rules"] == {}, "no verdict of several seeds is pre-registered"
    report = figure.make()
    assert "note: 2 seeds: all verdicts are exploratory" in report
    assert "exploratory" not in parts[0].make()
    fresh = replace(parts[0], outputs=tmp_path / "new", runs=())
    fresh.register_rules()
    assert fresh.provenance()["rules"], "of one seed they are"


def test_one_seed_changes_no_table(tmp_path):
    figure = made(tmp_path, "rank-fig3b", "layers=100")
    pd.testing.assert_frame_equal(figure.tables()["spectrum"], load(figure.runs)["spectrum"])


def with_twins(figure: Figure) -> tuple[Figure, dict[str, pd.DataFrame]]:
    """Return a figure whose runs have twins with another seed and equal numbers, and its tables.

    Learning rates that the runs have chosen differ.
    """
    later = 1 + max(run.config.seed for run in figure.runs)
    twins = {
        run.key: Run(replace(run.config, seed=run.config.seed + later), figure.outputs)
        for run in figure.runs
    }
    tables = {}
    for name, rows in load(figure.runs).items():
        other = rows.assign(
            run=rows["run"].map(lambda run: twins[run].key), seed=rows["seed"] + later
        )
        if "selected_on" in rows:  # another seed may choose another rate
            other["learning_rate"] *= 2
        tables[name] = pd.concat([rows, other], ignore_index=True)
    both = replace(figure, runs=(*figure.runs, *twins.values()))
    return both, unite(tables, both.runs)


BY_BLOCKS = {"sparse-threshold": "twenty blocks of replicates, whatever their number"}
CHOSEN = {"norm-schedules": "all other replicates choose the rates"}


CHEAP = ("beyond-gradient-flow", "bottleneck-theorems", "norm-budget", "rank-starts")
"""The figure of each paper that `make test` has."""


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    samples(
        sorted(figure_names("smoke"), key=lambda name: name not in CHEAP),
        lambda name: paper_folder(figure_study(name)),
    ),
)
def test_every_figure_counts_each_network_of_two_seeds_once(tmp_path, name):
    figure = made(tmp_path, name)
    if not figure.runs[0].config.random:
        with pytest.raises(InputError, match=f"^{name} has no randomness: omit seed$"):
            paper_figure(name, [*SMOKE, "seed=1,2"])
        return
    assert all(map(can_unite, rows_of(figure.study).values()))
    both, tables = with_twins(figure)
    united, single = measured(both, tables), measured(figure, figure.tables())
    if name not in CHOSEN:
        united = {key: rows for key, rows in united.items() if key[0] not in BY_BLOCKS}
        require_union(united, [single, single])
    assert len(both.judge(tables)) == len(figure.judge())
    both.drawn(tables)
    assert "of each of the seeds" in both.header(tables).what
