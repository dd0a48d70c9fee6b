"""The picture of a sweep: what is drawn, against what, and what is said of what is not."""

import json
import re
from dataclasses import fields
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import run as run_here
from some_runs import METHODS, described, one, say

import runner
from runner.core.catalogue import part_of, rows_of, studies
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.looks import NORMALIZATIONS
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.norm_tuning.constructions import figures, study
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.training_invariances.invariances.config import Invariances
from runner.results import sweeps
from runner.results.labels import names_of
from runner.results.sweep_pictures import COLORS, chosen, difference, draw, write
from runner.runs.execution import execute
from runner.runs.inventory import find, run_in
from runner.runs.run import Run

HEADLINE = ["test_mse", "relative_mse", "max_abs_error", "condition_number"]


@pytest.fixture
def runs(outputs):
    """A sweep over target_width."""
    return [run_in(one(outputs, target_width=width, methods=METHODS)) for width in (2, 3)]


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


def damage(run, **columns):
    """Let the first rows of a table have other numbers, as if the run had measured them."""
    path = run.folder / "metrics.csv"
    rows = pd.read_csv(path)
    for name, value in columns.items():
        rows.loc[0, name] = value
    rows.to_csv(path, index=False, na_rep="nan")
    about = json.loads(run.result_path.read_text())
    about["tables"]["metrics"] |= described(path)
    run.result_path.write_text(json.dumps(about))


def dots(axes):
    """The heights of the single replicates, from below."""
    lines = [line for line in axes.lines if line.get_marker() == "."]
    return np.sort(np.concatenate([line.get_ydata() for line in lines]))


def lines(axes):
    """The heights along each line."""
    drawn = [line for line in axes.lines if line.get_marker() != "."]
    return {tuple(line.get_ydata()) for line in drawn} - {()}  # those of the legend have none


def test_the_numbers_drawn_are_those_of_the_tables_each_once(runs):
    plot = chosen([*runs, runs[0]])
    assert (plot.x, plot.color, plot.panel) == ("target_width", "line", "number")
    assert list(plot.points["number"].unique()) == HEADLINE
    where = ["target_width", "line", "run", "replicate"]
    assert not plot.points.duplicated([*where, "number"]).any()
    tables = pd.concat([run.tables()["metrics"] for run in runs])
    picture = draw(plot)
    for number, axes in zip(HEADLINE, picture.axes, strict=True):
        values = np.sort(tables[number].dropna())
        shown = plot.points.loc[plot.points["number"] == number, "value"]
        np.testing.assert_array_equal(np.sort(shown), values)
        np.testing.assert_array_equal(dots(axes), values)
    medians = tables.groupby(["method", "target_width"])["test_mse"].median()
    expected = {tuple(rows) for _, rows in medians.groupby("method")}
    assert lines(picture.axes[0]) == expected


def test_what_is_no_number_is_named_and_what_varies_not_is_left_out(runs, constructed, monkeypatch):
    *absent, drawn = chosen(runs).notes[1:]
    assert absent == ["no condition number, sgd", "no condition number, dense"]
    assert drawn == "lines: median of n = 2 replicates, dot: one of them"
    two = [constructed(), constructed(theorem="sparse")]
    plot = chosen(two)
    assert "agreement" not in set(plot.points["number"]), "it is 1 everywhere"
    assert list(chosen(two, y=["agreement"]).points["value"]) == [1.0] * 4
    monkeypatch.setattr(figures, "HEADLINE", ["agreement"])
    with pytest.raises(InputError, match="no number of constructions varies with theorem"):
        chosen(two)


def test_diverged_replicates_stand_on_the_rail(runs):
    damage(runs[1], test_mse=np.nan)
    plot = chosen(runs, y=["test_mse"])
    assert plot.points["value"].isna().sum() == 1
    (axes,) = draw(plot).axes
    finite = plot.points["value"].max()
    assert "diverged" in [text.get_text() for text in axes.texts]
    assert (dots(axes) > finite).sum() == 1 and np.isfinite(dots(axes)).all()


def test_runs_that_are_missing_are_counted(runs, outputs):
    missing = run_in(say(one(outputs, target_width=3, methods="[sgd]"), "interrupted"))
    plot = chosen([*runs, missing])
    assert (
        plot.notes[0] == "3 runs by target width, methods, 1 missing"
        and plot.notes[0] in plot.caption
    )
    assert set(plot.points["run"]) == {run.folder.name for run in runs}
    *_, last = sweeps.ending([*runs, missing]).splitlines()
    assert last.startswith(f"{outputs}/sweeps/bn_only-") and last.endswith(".png")
    assert "2 of 3 runs of bn_only" in sweeps.ending([*runs, missing])
    assert sweeps.ending([missing]) == "", "nothing is complete"


def test_a_sweep_of_which_a_run_fails_ends_with_the_picture_of_the_others(
    tmp_path, monkeypatch, capsys
):
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
    numbers = pd.read_csv(Path(path).with_suffix(".csv"))
    assert set(numbers["depth"]) == {1, 3}
    monkeypatch.undo()
    assert run_here([*words, f"outputs={tmp_path}"], monkeypatch) == 0, "given again"
    assert capsys.readouterr().out.splitlines()[-1] == path
    assert " 3 runs by depth; " in Path(path).with_suffix(".caption.txt").read_text()


def test_the_same_sweep_has_one_picture_its_numbers_and_a_caption(runs, outputs):
    path = write(chosen(runs), outputs)
    assert path == write(chosen(runs[::-1]), outputs)
    files = {each.name.removeprefix(path.stem) for each in path.parent.iterdir()}
    assert files == {".png", ".pdf", ".csv", ".caption.txt"}
    assert len(pd.read_csv(path.with_suffix(".csv"))) == len(chosen(runs).points)
    (outputs / "sweeps").rename(outputs / "others")
    (outputs / "sweeps").write_text("a file")
    assert "no picture: " in sweeps.ending(runs).splitlines()[-1]


def test_the_second_parameter_is_colour_the_third_has_panels(constructed):
    three = [
        constructed(theorem=theorem, target=target, depth=depth, seed=seed)
        for theorem in ("wide", "sparse")
        for target, depth in (("random", 1), ("random", 2))
        for seed in (0, 1)
    ]
    plot = chosen(three)
    assert (plot.x, plot.color, plot.panel) == ("depth", "theorem", "number"), (
        "seeds are replicates"
    )
    assert len(plot.points[plot.points["number"] == "max_abs_error"]) == 16
    ranks = [constructed(theorem=theorem, depth=depth, rank=rank)
             for theorem in ("wide", "sparse") for depth in (1, 2) for rank in (1, 2)]  # fmt: skip
    plot = chosen(ranks, y=["max_abs_error"])
    assert (plot.x, plot.color, plot.panel) == ("depth", "rank", "theorem")
    left, right = draw(plot).axes
    assert len(dots(left)) == len(dots(right)) == 8
    assert left.get_ylim() == right.get_ylim()
    with pytest.raises(
        InputError, match=r"differ in .*depth.*; choose a part, for example --where \w+="
    ):
        chosen([*ranks, constructed(block=1)])
    assert (chosen(three, "theorem").x, chosen(three, "theorem").color) == ("theorem", "depth")


def test_seeds_alone_are_an_axis(constructed):
    assert chosen([constructed(seed=0), constructed(seed=1)]).x == "seed"


def test_a_sweep_has_colours_and_names_of_the_figures_and_the_numbers_of_its_table(
    tmp_path, monkeypatch, capsys
):
    """Batch norm is blue; the table is of medians, as the lines are, and both say so."""
    words = ["-m", "study=rank_collapse", "scale=smoke", "train=false", "depth=2,6"]
    words += ["replicates=3", f"outputs={tmp_path}"]
    assert run_here(words, monkeypatch) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["depth", "normalization", "rank", "soft", "rank", "r", "run"]
    assert "median of n = 3 replicates" in said
    plot = chosen([found.run for found in find(tmp_path, "rank_collapse")])
    assert plot.headline.startswith("Rank, soft rank, r against depth")
    assert "lines: median of n = 3 replicates, dot: one of them" in plot.notes
    picture = draw(plot)
    (legend,) = [axes.get_legend() for axes in picture.axes if axes.get_legend()]
    colors = {NAMES[kind]: look.color for kind, look in NORMALIZATIONS.items()}
    for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True):
        assert line.get_color() == colors[text.get_text()]
    points = plot.points.query("number == 'rank_bound' and line == 'none'")
    medians = points.groupby("depth")["value"].median()
    shown = [line.split() for line in said[1:] if "plain" in line]
    assert {int(row[0]): float(row[-2]) for row in shown} == pytest.approx(
        medians.to_dict(), rel=1e-3
    )
    assert medians.to_dict() != pytest.approx(points.groupby("depth")["value"].mean().to_dict())


def test_categories_have_no_line_between_them(constructed):
    axes, *_ = draw(chosen([constructed(), constructed(theorem="sparse")])).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Theorem\n1", "Theorem\n3"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}


def test_methods_that_are_too_many_are_taken_together(tmp_path):
    run = Run(
        Invariances(architecture="residual_free", width=4, samples=6, time=0.4, records=2), tmp_path
    )
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    plot = chosen([run], "time", ["drift"])
    assert plot.notes[1] == "at the last learning rate, layer; over every place"
    pairs = set(run.tables()["metrics"]["pair"])
    assert set(plot.points["line"]) == pairs and len(pairs) <= len(COLORS)


def test_along_an_axis_within_the_runs_there_is_a_curve_for_each_run_and_method(outputs, runs):
    plot = chosen(runs, "samples", ["mse"])
    assert plot.color == "target_width"
    (axes,) = draw(plot).axes
    curves = pd.concat([run.tables()["curves"].assign(run=str(run)) for run in runs])
    medians = curves.groupby(["run", "method", "samples"])["mse"].median()
    assert lines(axes) == {tuple(rows) for _, rows in medians.groupby(["run", "method"])}
    assert set(chosen(runs, "samples").points["number"]) == {"curves.mse"}, "no headline has it"
    (found,) = find(outputs, "example20")
    with pytest.raises(InputError, match="differ in no parameter: .* --x"):
        chosen([found.run])
    assert "exponent" in chosen([found.run], "seed", ["excess"]).notes[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--x", "target_widht"), "did you mean 'target_width'"),
        (("--y", "test_msee"), "did you mean 'test_mse'"),
        (("--color", "methode"), "did you mean 'method'"),
        (("--x", "samples", "--y", "test_mse"), "bn_only has no test_mse by samples: .*mse"),
        (("--out", "plot.jpg"), "must end in .png"),
        (("--where", "target_width=7"), "none of 3 runs is chosen|none of 4 runs is chosen"),
        (("--status", "failed"), "none of"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_is_near(
    outputs, words, message, monkeypatch, capsys
):
    command = ["runs", "plot", "--study", "bn_only", *words, f"outputs={outputs}"]
    assert run_here(command, monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_runs_of_one_study_of_which_one_is_complete_are_needed(outputs):
    with pytest.raises(InputError, match="one study: 4 of bn_only, example20"):
        chosen([each.run for each in find(outputs)])
    for each in find(outputs, "bn_only"):
        say(each.folder, "failed")
    with pytest.raises(InputError, match="not complete runs of one study: 0 of bn_only"):
        chosen([each.run for each in find(outputs, "bn_only")])


def test_the_command_draws_and_prints_what_is_drawn(outputs, runs, monkeypatch, capsys, tmp_path):
    words = ["--study", "bn_only", "--where", f"methods={METHODS}", f"outputs={outputs}"]
    words += ["--x", "target_width", "--y", "test_mse", "--color", "method"]
    assert run_here(["runs", "plot", *words, "--table"], monkeypatch) == 0
    printed = pd.read_csv(StringIO(capsys.readouterr().out))
    plot = chosen(runs, "target_width", ["test_mse"], "method")
    assert list(printed["value"]) == list(plot.points["value"])
    out = tmp_path / "plot.pdf"
    assert run_here(["runs", "plot", *words, "--out", str(out)], monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(out) and out.stat().st_size > 1000
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


@pytest.mark.parametrize(
    ("second", "said"),
    [([1, 2], ": plain lies above batch norm"), ([4, 5], ": batch norm lies above plain")]
    + [([1, 5], "")],
)
def test_a_difference_is_said_where_one_line_is_above_the_other_at_every_place(second, said):
    rows = [
        {"number": "rank", "normalization": method, "line": method, "depth": depth, "value": value}
        for method, values in (("none", [3, 3]), ("batch", second))
        for depth, value in zip((2, 4), values, strict=True)
    ]
    points, names = pd.DataFrame(rows), names_of("rank_collapse")
    assert difference(points, "depth", "normalization", "number", names) == said
