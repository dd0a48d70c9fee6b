"""The end of a sweep: its table, the commands that go on from there, and its picture."""

import re
import shlex
from dataclasses import fields, replace
from io import StringIO
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import run as run_here
from some_runs import METHODS, TINY, one, say

import runner
from runner.core import catalogue
from runner.core.catalogue import FOLDERS, Package, part_of, rows_of, studies
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.constructions import figures, study
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.names import NAMES
from runner.papers.training_invariances.invariances.config import Invariances
from runner.results import sweep_plot, sweep_report, sweeps
from runner.results.evidence import median_limits
from runner.results.style import PALETTE
from runner.results.sweep_plot import draw, medians, write
from runner.results.sweep_report import ending
from runner.results.sweeps import Sweep, SweepPlot
from runner.runs.execution import execute
from runner.runs.inventory import find, run_in
from runner.runs.run import Run

HEADLINE = ["test_mse", "relative_mse", "max_abs_error", "condition_number"]


def sweep_in(outputs: Path) -> list[Run]:
    """Return the two runs that differ in target_width."""
    return [run_in(one(outputs, target_width=width, methods=METHODS)) for width in (2, 3)]


@pytest.fixture(scope="module")
def runs(computed):
    """A sweep that no test changes."""
    return sweep_in(computed)


@pytest.fixture
def copied(outputs):
    """The same sweep, for one test to change."""
    return sweep_in(outputs)


@pytest.fixture(scope="module")
def constructed(tmp_path_factory):
    """A function that gives the complete run of `constructions` at these parameters."""
    outputs = tmp_path_factory.mktemp("constructed")

    def constructed(**parameters):
        run = Run(Constructions(points=5, replicates=2, target_width=2, **parameters), outputs)
        if not run.is_complete():
            execute(run, Settings(outputs=str(outputs), device="cpu"))
        return run

    return constructed


def dots(axes):
    """The heights of the single replicates, from below."""
    lines = [line for line in axes.lines if line.get_marker() == "."]
    return np.sort(np.concatenate([line.get_ydata() for line in lines]))


def lines(axes):
    """The heights along each line."""
    drawn = [line for line in axes.lines if line.get_marker() != "."]
    return {tuple(line.get_ydata()) for line in drawn} - {()}  # those of the legend have none


def commands(text: str) -> list[list[str]]:
    """The words of the commands that are shown."""
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  runner ")]


# ------------------------------------------------------------------------------ table, commands


def test_the_table_has_what_differs_the_medians_and_the_hash(runs):
    table = Sweep(runs).table()
    assert list(table) == ["target_width", "method", *HEADLINE, "run"]
    assert list(table["target_width"]) == [2] * 4 + [3] * 4
    assert set(table["run"]) == {run.folder.name[-8:] for run in runs}
    medians = runs[1].tables()["metrics"].groupby("method")["test_mse"].median()
    shown = table[table["target_width"] == 3]["test_mse"]
    assert sorted(shown) == sorted(medians)


def test_the_commands_choose_the_runs_of_the_sweep(outputs, copied, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sweep_report, "MOST_LINES", 4)
    text = ending(copied)
    assert len(text.partition("\n... and 4 more lines\n")[0].splitlines()) == 1 + 4
    assert f"\n2 runs of bn_only: {outputs}/runs/bn_only\n" in text
    assert "\nmedian of 2 replicates\n" in text
    monkeypatch.chdir(tmp_path)
    listing, plot, export, diff = commands(text)
    assert run_here(listing, monkeypatch) == 0
    assert copied[0].folder.name[-8:] in capsys.readouterr().out
    assert run_here(plot, monkeypatch) == 0 and ".png" in capsys.readouterr().out
    assert run_here(export, monkeypatch) == 0
    assert set(pd.read_csv(tmp_path / "bn_only.csv")["target_width"]) == {2, 3}
    capsys.readouterr()
    assert run_here(diff, monkeypatch) == 1
    assert "target_width  2  3" in capsys.readouterr().out


def test_a_report_has_a_table_for_each_study_and_names_given_folders(outputs, monkeypatch):
    monkeypatch.chdir(outputs.parent)
    monkeypatch.setattr(sweep_report, "write", lambda plot, outputs: "path")
    package = Package("runner.papers.norm_tuning", Path("/somewhere/norm_tuning"))
    monkeypatch.setattr(catalogue, "packages", lambda: [package])
    monkeypatch.setenv(FOLDERS, '["/else:where", "/somewhere/norm_tuning"]')
    relative = [Path("outputs") / info.folder.relative_to(outputs) for info in find(outputs)]
    text = ending([run_in(folder) for folder in relative])
    assert "3 runs of bn_only: outputs/runs" in text and "1 run of example20: " in text
    assert "outputs=" not in text, "the default folder is not named"
    first, *_, last = commands(text)
    given = ["--config-dir", "/else:where", "--config-dir", "/somewhere/norm_tuning"]
    assert first[:5] == last[:5] == [*given, "runs"], "all that were given"


def test_the_picture_of_a_sweep_with_a_failed_run_shows_the_others(tmp_path, monkeypatch, capsys):
    def run(config, context, run=study.run):
        if config.depth == 2:
            raise ValueError("as a test wants it")
        return run(config, context)

    monkeypatch.setattr(study, "run", run)
    words = ["-m", "study=constructions", "depth=1,2,3", "target_width=2", "points=5"]
    assert run_here([*words, f"outputs={tmp_path}"], monkeypatch) == 1
    *_, path = capsys.readouterr().out.splitlines()
    assert path.startswith(f"{tmp_path}/sweeps/constructions-depth-")
    assert "3 runs by depth, 1 missing" in Path(path).with_suffix(".caption.txt").read_text()
    assert set(pd.read_csv(Path(path).with_suffix(".csv"))["depth"]) == {1, 3}


# ------------------------------------------------------------------------------ picture


def test_the_numbers_drawn_are_those_of_the_tables_in_the_looks_of_the_figures(runs):
    plot = Sweep([*runs, runs[0]]).choose()
    assert (plot.x, plot.color, plot.panel) == ("target_width", "line", "number")
    assert list(plot.points["number"].unique()) == HEADLINE
    where = ["target_width", "line", "run", "replicate"]
    assert not plot.points.duplicated([*where, "number"]).any()
    assert "lines: median of 2 replicates, dot: one of them" in plot.notes
    tables = pd.concat([run.tables()["metrics"] for run in runs])
    picture = draw(plot)
    for number, axes in zip(HEADLINE, picture.axes, strict=True):
        values = np.sort(tables[number].dropna())
        drawn = plot.points.loc[plot.points["number"] == number, "value"]
        np.testing.assert_array_equal(np.sort(drawn), values)
        np.testing.assert_array_equal(dots(axes), values)
    medians = tables.groupby(["method", "target_width"])["test_mse"].median()
    assert lines(picture.axes[0]) == {tuple(rows) for _, rows in medians.groupby("method")}
    (legend,) = [axes.get_legend() for axes in picture.axes if axes.get_legend()]
    methods = list(plot.points["method"].unique())
    colors = [NAMES["method"][method].look.color for method in methods]
    assert [line.get_color() for line in legend.get_lines()] == colors


def test_what_does_not_vary_is_drawn_only_if_it_is_asked_for(constructed, monkeypatch):
    sweep = Sweep([constructed(), constructed(theorem="sparse")])
    assert "agreement" not in set(sweep.choose().points["number"]), "it is 1 everywhere"
    assert list(sweep.choose(y=["agreement"]).points["value"]) == [1.0] * 4
    axes, *_ = draw(sweep.choose()).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Theorem 1", "Theorem 3"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}, "no line between categories"
    monkeypatch.setattr(figures, "HEADLINE", ["agreement"])
    with pytest.raises(InputError, match="no number of constructions varies with theorem"):
        sweep.choose()


def test_a_band_is_the_exact_interval_of_the_median_over_replicates_and_seeds(constructed):
    runs = [constructed(seed=seed, depth=depth) for seed in range(3) for depth in (1, 2)]
    plot = Sweep(runs).choose("depth", ["max_abs_error"], band=True)
    assert (
        plot.notes[-2] == "lines: median of 6 networks (3 seeds × 2 replicates), dot: one of them"
    )
    assert plot.notes[-1] == (
        "bands: 90\u00a0% confidence interval of the median, exact for independent networks"
        " (n\u00a0=\u00a06)"
    )
    table = medians(plot)
    assert list(table["n"]) == [6, 6] and "curve" not in table
    (axes,) = [axes for axes in draw(plot).axes if axes.collections]
    (band,) = axes.collections
    drawn = {tuple(point) for point in band.get_paths()[0].vertices}
    for depth, rows in plot.points.groupby("depth"):
        assert len(rows) == 6
        limits = median_limits(rows["value"].to_numpy())
        assert {(depth, limit) for limit in limits} <= drawn
        (point,) = table[table["depth"] == depth].itertuples()
        assert (point.median, point.low, point.high) == (rows["value"].median(), *limits)
    with pytest.raises(
        InputError, match="needs 5 replicates or seeds at a point; these runs have 4"
    ):
        Sweep(runs[:4]).choose("depth", ["max_abs_error"], band=True)


def test_replicates_that_are_equal_count_once(constructed):
    """As ranks at layer 0 are: all replicates of a seed have the same inputs."""
    runs = [constructed(seed=seed, depth=depth) for seed in range(3) for depth in (1, 2)]
    sweep = Sweep(runs)
    table = sweep.tables["metrics"].sort_values(["run", "replicate"])
    first = table.groupby("run").transform("first").assign(run=table["run"])
    equal = first.assign(replicate=table["replicate"])
    sweep.tables["metrics"] = equal
    plot = sweep.choose("depth", ["max_abs_error"])
    assert (
        "lines: median of 3 seeds, where replicates with equal numbers count once" in plot.caption
    )
    assert list(medians(plot)["n"]) == [3, 3]
    with pytest.raises(InputError, match="these runs have 3, where replicates with equal numbers"):
        sweep.choose("depth", ["max_abs_error"], band=True)
    sweep.tables["metrics"] = equal.where(~((equal["depth"] == 2) & (equal["seed"] == 1)), table)
    assert list(medians(sweep.choose("depth", ["max_abs_error"]))["n"]) == [3, 6], "one differs"
    sweep.tables["metrics"] = equal.assign(**dict.fromkeys(equal.select_dtypes("float"), np.nan))
    plot = sweep.choose("depth", ["equations"])
    assert list(medians(plot)["n"]) == [6, 6], "diverged networks, or equal whole numbers"


def test_a_number_is_that_at_the_end_of_each_network(runs):
    """Methods and replicates may have other learning rates, and other numbers of epochs."""
    lines = [
        ("a", "sgd", 0, 0.1, 1, 1.0), ("a", "sgd", 0, 0.1, 2, 2.0), ("a", "sgd", 1, 0.3, 2, 3.0),
        ("a", "adam", 0, 0.9, 2, 4.0), ("a", "adam", 1, 0.9, 3, 5.0),
    ]  # fmt: skip
    keys = ["method", "replicate", "rate", "epoch"]
    rows = pd.DataFrame(lines, columns=["run", *keys, "value"]).assign(number="loss")
    for roles in ([], ["method"]):
        points = sweeps._at_the_end(rows, keys, roles, Sweep(runs).names)
        assert list(points["value"]) == [2.0, 3.0, 4.0, 5.0]
        assert {*points["at"]} == {"at the last epoch"}


def test_a_picture_says_which_rows_it_draws_and_how_its_runs_differ_from_the_defaults(computed):
    runs = [info.run for info in find(computed, "bn_only") if info.config.target_width == 3]
    runs = [run for run in runs if len(run.config.methods) > 1]
    whole, part = Sweep(runs), Sweep(runs)
    part.only(["sgd", "dense"])
    part.where("samples >= 100")
    plots = [sweep.choose("samples", ["mse"]) for sweep in (whole, part)]
    assert plots[0].name != plots[1].name, "no picture replaces the other"
    said = ["only dense network, γ and β trained", "only where samples >= 100"]
    assert [note for note in plots[1].notes if note.startswith("only")] == said
    header = draw(plots[1]).texts
    for text in said:
        caption = " ".join(plots[1].caption.split())
        assert text in caption and text in " ".join(" ".join(t.get_text() for t in header).split())
    assert "; only" not in plots[0].caption
    settings = " ".join(plots[0].caption.split("\n\n")[1].split())
    assert f"test samples: {TINY['test_samples']}; batch size: {TINY['batch_size']}" in settings
    assert settings.count("2 replicates") == 1 and "scale" not in settings


def test_diverged_replicates_are_drawn_on_the_rail(runs):
    plot = Sweep(runs).choose(y=["test_mse"])
    points = plot.points.reset_index(drop=True)
    points.loc[0, "value"] = np.nan
    (axes,) = draw(replace(plot, points=points)).axes
    assert "diverged" in [text.get_text() for text in axes.texts]
    assert (dots(axes) > points["value"].max()).sum() == 1 and np.isfinite(dots(axes)).all()


def test_missing_runs_are_counted_and_the_same_runs_have_the_same_picture(outputs, copied):
    missing = run_in(say(one(outputs, target_width=3, methods="sgd"), "interrupted"))
    plot = Sweep([*copied, missing]).choose()
    assert plot.notes[0] == "3 runs by target width, methods, 1 missing"
    assert plot.notes[0] in plot.caption
    assert set(plot.points["run"]) == {run.key for run in copied}
    assert "2 of 3 runs of bn_only" in ending([*copied, missing])
    assert ending([missing]) == "", "nothing is complete"
    path = write(Sweep(copied).choose(), outputs)
    assert path.stem == Sweep(copied[::-1]).choose().name
    files = {file.name.removeprefix(path.stem) for file in path.parent.glob(f"{path.stem}*")}
    assert files == {".png", ".pdf", ".csv", ".caption.txt"}
    stored = pd.read_csv(path.with_suffix(".csv"))
    pd.testing.assert_frame_equal(stored, medians(Sweep(copied).choose()), check_dtype=False)
    (outputs / "sweeps").rename(outputs / "others")
    (outputs / "sweeps").write_text("a file")
    assert "no picture: " in ending(copied).splitlines()[-1]


def test_the_second_parameter_is_colour_the_third_has_panels(constructed):
    three = [
        constructed(theorem=theorem, depth=depth, seed=seed)
        for theorem in ("wide", "sparse")
        for depth in (1, 2)
        for seed in (0, 1)
    ]
    plot = Sweep(three).choose()
    assert (plot.x, plot.color, plot.panel) == ("depth", "theorem", "number")
    assert len(plot.points[plot.points["number"] == "max_abs_error"]) == 16, "seeds are replicates"
    plot = Sweep(three).choose("theorem")
    assert (plot.x, plot.color) == ("theorem", "depth")
    assert Sweep([three[0], three[1]]).choose().x == "seed", "alone it is the axis"
    ranks = [constructed(theorem=theorem, depth=depth, rank=rank)
             for theorem in ("wide", "sparse") for depth in (1, 2) for rank in (1, 2)]  # fmt: skip
    plot = Sweep(ranks).choose(y=["max_abs_error"])
    assert (plot.x, plot.color, plot.panel) == ("depth", "rank", "theorem")
    left, right = draw(plot).axes
    assert len(dots(left)) == len(dots(right)) == 8
    assert left.get_ylim() == right.get_ylim()
    with pytest.raises(InputError, match=r"differ in .*depth.*; choose a part, .* --where '\w+ =="):
        Sweep([*ranks, constructed(block=1)]).choose()


def test_methods_that_are_too_many_are_taken_together(tmp_path):
    run = Run(
        Invariances(architecture="residual_free", width=4, samples=6, time=0.4, records=2), tmp_path
    )
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    plot = Sweep([run]).choose("time", ["drift"])
    assert plot.notes[1] == "at the last learning rate, layer; over every place"
    pairs = set(run.tables()["metrics"]["pair"])
    assert set(plot.points["line"]) == pairs and len(pairs) <= len(PALETTE)


def test_along_an_axis_within_the_runs_each_run_and_method_has_a_curve(computed, runs):
    plot = Sweep(runs).choose("samples", ["mse"])
    assert plot.color == "target_width"
    (axes,) = draw(plot).axes
    assert plot.notes[1] == "lines: median of 2 replicates, dot: one of them"
    assert {*sweep_plot.medians(plot)["curve"]} == {run.key for run in runs}
    curves = pd.concat([run.tables()["curves"].assign(run=str(run)) for run in runs])
    medians = curves.groupby(["run", "method", "samples"])["mse"].median()
    assert lines(axes) == {tuple(rows) for _, rows in medians.groupby(["run", "method"])}
    points = Sweep(runs).choose("samples").points
    assert set(points["number"]) == {"curves.mse"}, "no headline has it"
    (example,) = find(computed, "example20")
    with pytest.raises(InputError, match="differ in no parameter: .* --x"):
        Sweep([example.run]).choose()
    assert "exponent" in Sweep([example.run]).choose("seed", ["excess"]).notes[1]


def test_along_an_axis_within_the_runs_seeds_are_replicates(tmp_path):
    sizes = {**TINY, "target_width": 2, "methods": ["sgd"]}
    runs = [Run(BnOnly(**sizes, seed=seed), tmp_path) for seed in range(3)]
    for run in runs:
        execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    plot = Sweep(runs).choose("samples", ["mse"], band=True)
    assert (plot.color, plot.panel) == ("line", "number")
    (axes,) = [axes for axes in draw(plot).axes if axes.collections]
    rows = pd.concat(run.tables()["curves"] for run in runs)
    by_samples = rows.groupby("samples")["mse"]
    assert (by_samples.size() == 6).all(), "3 seeds of 2 replicates"
    assert lines(axes) == {tuple(by_samples.median())}
    assert len(axes.collections) == 1
    apart = Sweep(runs).choose("samples", ["mse"], "seed")
    assert len(lines(draw(apart).axes[0])) == 3, "unless the color is to tell them apart"


def of_seeds(number: str, chosen: list[float], kinds: list[str], x: str) -> SweepPlot:
    """What is drawn of two networks of each kind, which differ in a seed and chose their rates."""
    keys = ("normalization", "replicate", "learning_rate", "epoch")
    rows = pd.DataFrame(
        [
            (f"run {i % 2}", kind, 0, chosen[i], epoch, 0.1 * i + epoch)
            for i, kind in enumerate(np.repeat(kinds, 2))
            for epoch in (1, 2)
        ],
        columns=["run", *keys, "value"],
    ).assign(number=number)
    points = sweeps._at_the_end(rows, keys, [x], sweeps.names_of("rank_collapse"))
    color = "line" if x == "normalization" else "normalization"
    points = points.assign(curve="run 0", **{color: points["line"]})
    return SweepPlot("rank_collapse", "name", x, color, "number", points, "headline", [], "caption")


def test_a_learning_rate_that_a_network_chose_leaves_out_no_network():
    rates = [0.1, 0.03, 0.03, 0.03, 0.3, 0.1]
    plot = of_seeds("test_accuracy", rates, ["none", "batch", "layer"], "normalization")
    assert set(plot.points["at"]) == {"at the last epoch"}
    found = medians(plot).set_index("normalization")
    assert found["n"].to_dict() == {"none": 2, "batch": 2, "layer": 2}
    assert found["median"].to_dict() == pytest.approx({"none": 2.05, "batch": 2.25, "layer": 2.45})


def test_methods_of_the_user_have_colors_that_no_other_method_has():
    kinds = ["none", "batch", "batch_no_mean", "layer", "rms", "mine", "other", "third"]
    plot = of_seeds("test_accuracy", [0.1] * 16, kinds, "epoch")
    looks = [look for _, look in sweep_plot._series(plot).values()]
    assert len({look.hue for look in looks}) == len(kinds)


def test_long_names_below_an_axis_are_whole_and_within_the_picture():
    kinds = ["none", "batch", "batch_no_mean", "layer", "rms", "mine", "a_normalization_by_medians"]
    picture = draw(of_seeds("test_accuracy", [0.1] * 14, kinds, "normalization"))
    picture.draw_without_rendering()
    (axes,) = picture.axes
    assert axes.get_tightbbox().y0 >= 0
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert "without mean\nsubtraction" in texts and "a_\nnormalization_\nby_medians" in texts


def test_seeds_alone_have_one_row_and_one_mark_for_each_method(tmp_path, monkeypatch, capsys):
    sizes = {"width": 6, "depth": 2, "samples": 4, "batch_size": 512, "epochs": 2, "replicates": 2}
    config = RankCollapse(**sizes, learning_rates=[0.01])
    runs = [Run(replace(config, seed=seed), tmp_path) for seed in range(3)]
    for run in runs:
        execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    text = ending(runs)
    table, _, rest = text.partition("\nmedian and range over 3 seeds of medians of 2 replicates\n")
    assert len(table.splitlines()) == 3 and rest
    last = [
        run.tables()["training"].query("normalization == 'batch' and epoch == 2") for run in runs
    ]
    low, middle, high = sorted(rows["test_accuracy"].median() for rows in last)
    assert f"{middle:.4g} ({low:.4g} to {high:.4g})" in table
    plot = Sweep(runs).choose()
    assert plot.x == "normalization" and set(medians(plot)["n"]) == {6}
    assert "marks: median of 6 networks" in " ".join(plot.notes)
    _, _, along, export, _ = commands(text)
    monkeypatch.chdir(tmp_path)
    assert "--x epoch" in " ".join(along) and run_here(along, monkeypatch) == 0
    assert "--table training --mean" in " ".join(export)
    assert run_here(export, monkeypatch) == 0
    assert set(pd.read_csv("rank_collapse.csv")["normalization"]) == {"none", "batch"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--x", "target_widht"), "did you mean 'target_width'"),
        (("--y", "test_msee"), "did you mean 'test_mse'"),
        (("--color", "methode"), "did you mean 'method'"),
        (("--x", "samples", "--y", "test_mse"), "bn_only has no test_mse by samples: .*mse"),
        (("--out", "plot.jpg"), "must end in .png"),
        (("--where", "target_width == 7"), "none of 4 runs is chosen"),
        (("--status", "failed"), "none of"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    computed, words, message, monkeypatch, capsys
):
    command = ["runs", "plot", "--study", "bn_only", *words, f"outputs={computed}"]
    assert run_here(command, monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_runs_of_one_study_are_needed_and_one_of_them_complete(outputs):
    with pytest.raises(InputError, match="one study; there are 4 of bn_only, example20"):
        Sweep(info.run for info in find(outputs))
    folder = say(one(outputs, target_width=2, methods=METHODS), "failed")
    with pytest.raises(InputError, match="complete runs of one study; there are 0 of bn_only"):
        Sweep([run_in(folder)])


def test_the_command_draws_and_prints_the_points(computed, runs, monkeypatch, capsys, tmp_path):
    words = ["--study", "bn_only", "--where", f"methods == '{METHODS}'", f"outputs={computed}"]
    words += ["--x", "target_width", "--y", "test_mse", "--color", "method"]
    assert run_here(["runs", "plot", *words, "--csv"], monkeypatch) == 0
    printed = pd.read_csv(StringIO(capsys.readouterr().out))
    plot = Sweep(runs).choose("target_width", ["test_mse"], "method")
    drawn = {*chain(*lines(draw(plot).axes[0]))}
    assert {*printed["median"]} == drawn and {*printed["n"]} == {2}
    assert list(printed) == ["number", "method", "target_width", "median", "n"], "no empty column"
    out = tmp_path / "plot.pdf"
    assert run_here(["runs", "plot", *words, "--out", str(out)], monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(out) and out.stat().st_size > 1000
    assert not (table := out.with_suffix(".csv")).exists()
    out.unlink()
    assert run_here(["runs", "plot", *words, "--out", str(out), "--csv"], monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [str(out), str(table)]
    assert out.stat().st_size > 1000
    pd.testing.assert_frame_equal(pd.read_csv(table), printed)
    picture = runner.plot(runs, x="target_width", y="test_mse", color="method")
    assert [axes.get_xlabel() for axes in picture.axes] == ["target width d"]


@pytest.mark.parametrize("name", studies())
def test_headline_numbers_are_columns_of_the_study(name):
    named = getattr(part_of(name, "figures"), "HEADLINE", [])
    known = {
        name
        for table, row_class in rows_of(name).items()
        for item in fields(row_class)
        if item.type in (int, float) and item.name not in row_class.keys
        for name in (item.name, f"{table}.{item.name}")
    }
    assert 1 <= len(named) <= 4 and set(named) <= known
