"""`runner runs`: what it prints, and its exit codes."""

import io
import json
import math
import re
import shlex
import shutil
import sys

import pandas as pd
import pytest
from in_process import run as run_here
from some_runs import METHODS, one, say

from runner.commands import export
from runner.commands.export import mean_in_tex
from runner.runs import lock
from runner.runs.inventory import run_in


@pytest.fixture
def runs(outputs, monkeypatch, capsys):
    """Carries out `runs <words>` on the outputs; returns code, stdout and stderr."""

    def carry_out(*words: str):
        code = run_here(["runs", *words, f"outputs={outputs}"], monkeypatch)
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        return code, shown.out, shown.err

    return carry_out


@pytest.fixture
def two(outputs):
    """Two runs that differ in target_width."""
    return [one(outputs, target_width=width, methods=METHODS) for width in (2, 3)]


def listed(text: str) -> list[str]:
    """The hashes of the runs in a table."""
    return [
        word for word in text.split() if len(word) == 8 and set(word) <= set("0123456789abcdef")
    ]


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("words", "number", "counts"),
    [
        ("", 4, "4 runs: 4 complete"),
        ("list", 4, "4 runs: 4 complete"),
        ("--study example20", 1, "1 run: 1 complete"),
        ("list --where target_width==3", 2, "2 runs: 2 complete"),
        ("list --where target_width==3 --where methods=='sgd'", 1, "1 run: 1 complete"),
        ("list --status failed", 0, "none of 4 runs is chosen"),
        ("list --stale", 0, "none of 4 runs is chosen"),
    ],
)
def test_the_list_shows_the_runs_that_are_meant(runs, words, number, counts):
    code, shown, _ = runs(*words.split())
    assert code == 0 and len(listed(shown)) == number and counts in shown


def test_the_list_is_sorted_by_a_number_and_shows_it(runs):
    first, *_ = methods = [
        f"test_mse ({method})"
        for method in (
            "γ and β trained",
            "construction from the target",
            "dense network",
            "construction from the dense network",
        )
    ]
    words = ("list", "--study", "bn_only", "--columns", "test_mse")
    code, shown, _ = runs(*words, "--sort", first)
    header = shown.splitlines()[0]
    assert code == 0 and all(method in header for method in methods)
    assert "\ntest_mse: median over replicates" in shown
    rows = json.loads(runs(*words, "--sort", first, "--json")[1])
    numbers = [row["numbers"][first] for row in rows]
    assert len(numbers) == 3 and numbers == sorted(numbers)
    assert [len(row["numbers"]) for row in rows if "methods" in row["knobs"]] == [1]
    assert listed(runs(*words, "--sort", first, "-n", "1")[1]) == listed(shown)[:1]
    assert runs(*words, "--sort", "test_mse")[0] == 2
    assert f"choose from --sort '{first}'" in runs(*words, "--sort", "test_mse")[2]
    assert "did you mean 'test_mse'" in runs("list", "--columns", "test_mes")[2]
    one = ("--study", "bn_only", "--where", "methods=sgd")
    both = runs("list", *one, "--columns", "test_mse,max_abs_error")[1]
    assert both.split("\n")[0].split()[-2:] == ["test_mse", "max_abs_error"]
    mixed = runs("list", *one, "--columns", "test_mse,target_width")[1]
    assert mixed.split("\n")[0].split()[-2:] == ["test_mse", "target_width"]
    assert "did you mean 'target_width'" in runs("list", "--columns", "targetwidth")[2]
    assert "numbers" not in json.loads(runs("list", "--json")[1])[0]


def test_a_leader_board_has_the_largest_first_of_one_method(runs, two, outputs):
    words = ("list", "--study", "bn_only", "--method", "sgd")
    board = ("--sort", "-test_mse", "--columns", "target_width")
    code, shown, _ = runs(*words, *board)
    rows = [line.split() for line in shown.partition("\n\n")[0].splitlines()[1:]]
    numbers = [float(row[-1]) for row in rows]
    assert code == 0 and len(rows) == 3 and numbers == sorted(numbers, reverse=True)
    means = pd.read_csv(two[1] / "metrics.csv").query("method == 'sgd'")["test_mse"]
    (line,) = [row for row in rows if two[1].name[-8:] in row]
    assert line[-2:] == ["3", f"{means.median():.4g}"]
    assert listed(runs(*words, *board, "-n", "2")[1]) == listed(shown)[:2]
    one, other = (runs("list", "--method", m, *board)[1] for m in ("dense", "dense network"))
    assert one == other and len(listed(one)) == 2, "a run without the method is not on the board"
    code, shown, _ = runs("plot", *words[1:], *board[:2], "-n", "2")
    (first, second) = (line.split() for line in shown.splitlines()[1:3])
    assert code == 0 and [float(row[-2]) for row in (first, second)] == numbers[:2]


def test_numbers_are_sorted_as_numbers(tmp_path, monkeypatch, capsys):
    outputs = f"outputs={tmp_path}"
    sizes = ("scale=smoke", "depths=[4]", "grid=10,5,15,100")
    assert run_here(["-m", "study=example20", *sizes, outputs], monkeypatch) == 0
    for words in (["list"], ["list", "--sort", "grid"], ["export", "--summary"]):
        capsys.readouterr()
        assert run_here(["runs", *words, "--study", "example20", outputs], monkeypatch) == 0
        shown = capsys.readouterr().out
        numbers = re.findall(r"grid=(\d+)|^(\d+),", shown, re.MULTILINE)
        assert list(dict.fromkeys(int(a or b) for a, b in numbers)) == [5, 10, 15, 100]


def test_a_run_is_shown_with_the_command_that_makes_it_again(runs, two, tmp_path, monkeypatch):
    code, shown, _ = runs("show", two[1].name[-8:])
    assert code == 0 and "metrics.csv (8 rows)" in shown and "status: complete" in shown
    assert "target_width=3 (not 10)" in shown.splitlines()[0] and "seed" not in shown
    assert f"\npicture: {two[1]}/overview.png\n" in shown and len(shown.splitlines()) < 20
    (line,) = [line for line in shown.splitlines() if "construction from the target" in line]
    rows = pd.read_csv(two[1] / "metrics.csv").query("method == 'teacher_construction'")
    assert f"{rows['test_mse'].median():.4g}" in line.split()
    (again,) = [line for line in shown.splitlines() if line.startswith("with a change: runner ")]
    words = shlex.split(again.removeprefix("with a change: runner "))
    assert "target_width=3" in words and words[-1] == "KEY=VALUE"
    assert run_here([*words[:-1], "--dry-run", f"outputs={two[1].parents[2]}"], monkeypatch) == 0


def test_a_failed_run_is_shown_with_its_error(runs, two):
    say(two[0], "failed")
    (two[0] / "error.txt").write_text("Traceback\n  line\nValueError: the disk is full\n")
    assert "error: ValueError: the disk is full\n" in runs("show", two[0].name[-8:])[1]
    header, line, *_ = runs("list", "--status", "failed")[1].splitlines()
    assert header.split()[-1] == "failure" and line.endswith(" ValueError: the disk is full")
    (found,) = json.loads(runs("list", "--json", "--where", "failure.notnull()")[1])
    assert found["failure"] == "ValueError: the disk is full"
    assert "failure" not in runs("list", "--status", "complete")[1]


@pytest.mark.parametrize(("columns", "room"), [(30, 20), (100, 30)])
def test_what_is_cut_on_a_narrow_terminal_has_a_mark(runs, columns, room, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    _, shown, _ = runs("list", "--study", "bn_only")
    knobs = [line.split()[1] for line in shown.splitlines()[1:4]]
    assert all(len(text) == room and text[-1] == "…" for text in knobs)


def test_the_list_tells_the_living_from_the_dead_and_other_code(runs, two, outputs):
    change(one(outputs, target_width=3, methods="sgd") / "provenance.json", code="another")
    for folder in two:
        say(folder, "running")
    code, _, errors = runs("export", "--study", "bn_only", "--csv")
    assert code == 0 and "was computed by other code" in errors
    assert "2 of 3 runs are not complete: left out" in errors
    with lock.held(two[0], wait=False, what="this"):
        _, shown, _ = runs("list")
    assert "4 runs: 2 complete, 1 running, 1 dead (1 by other code)" in shown
    (line,) = [line for line in shown.splitlines() if two[1].name[-8:] in line]
    assert " dead " in line and "target_width=3" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lst", "did you mean 'list'"),
        ("list depth=3", "choose runs with --where"),
        ("list bn_only", "bn_only is a study: choose its runs with --study bn_only"),
        ("clean elsewhere", "name one folder of outputs"),
        ("list --where depth==3 --study bn_only", "there is no depth"),
        ("list --where seconds", "is no condition (a comparison is needed): write it as"),
        ("list --status complet", "did you mean 'complete'"),
        ("list -n -3", "-n -3: give a number of at least 1"),
        ("list --study bn_only --sort -test_mes --method sgd", "did you mean 'test_mse'"),
        ("list --study bn_only --sort -test_mse --method sdg", "no run has it: did you mean 'sgd'"),
        ("list --study bn_only --method sgd", "choose a number, too, as --sort"),
        (
            "list --study bn_only --sort -test_mse",
            "choose from --sort '-test_mse (γ and β trained)'",
        ),
        ("plot --study bn_only --band", "needs 5 replicates or seeds at a point; these runs have"),
        ("plot --study bn_only -n 3", "needs --sort, too"),
        ("plot --study bn_only --sort -test_mes", "did you mean 'test_mse'"),
        ("plot --study bn_only --method sdg", "no run has it: did you mean 'sgd'"),
        ("list --study bn_onyl", "did you mean 'bn_only'"),
        ("diff one", "runs diff needs two runs"),
        ("diff target_width depths", "target_width names 3 runs"),
        ("export --csv", "runs of 2 studies: choose one, --study bn_only"),
        ("export --csv --study example20 --table curves", "choose from metrics"),
        ("export --csv --status failed", "only complete runs have tables"),
        (
            "plot --study bn_only --where target_width=7",
            "of 4 runs is chosen: target_width is 2, 3",
        ),
        ("export --csv --study example20 a b", "writes one file"),
        ("export --csv --study example20 no/where.csv", "no/where.csv cannot be written"),
        ("clean --status running", "never removed"),
    ],
)
def test_wrong_words_are_explained(runs, words, message):
    code, _, errors = runs(*words.split())
    assert code == 2 and message in errors
    assert errors.startswith("error: ") and len(errors.splitlines()) <= 2


@pytest.mark.parametrize("action", ["", "list", "check", "diff", "export", "plot", "clean"])
def test_every_action_has_help(action, monkeypatch, capsys):
    assert run_here(["runs", *action.split(), "--help"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert f"usage: runner runs {action}".strip() in shown
    assert not action or "[outputs=FOLDER]\n" in shown, "one folder"


def test_two_runs_are_shown_side_by_side(runs, two):
    a, b = two
    code, shown, _ = runs("diff", a.name[-8:], str(b))
    assert code == 1
    assert f"A  {a}\nB  {b}\n" in shown
    assert "parameters:\n                A  B\n  target_width  2  3\n" in shown
    assert "code, machine, versions: the same" in shown
    assert "metrics: 8 rows matched\n" in shown
    about = json.loads((b / "provenance.json").read_text())
    about["versions"]["torch"] = "0.1"
    about["instructions"]["blas"] = "openblas Prescott"
    about |= {"code": "another", "commit": "0123456789", "dirty": True, "seconds": 1e9}
    change(b / "provenance.json", **about)
    shown = runs("diff", str(a), str(b))[1].partition("versions:")[2].partition("\n\n")[0]
    lines = [line.split()[0] for line in shown.splitlines()[2:]]
    assert lines == ["code", "commit", "versions:", "instructions:"] and "01234567+" in shown


def test_runs_of_the_same_numbers_have_no_difference(runs, outputs, tmp_path):
    folder = one(outputs, target_width=2)
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / folder.name)
    code, shown, _ = runs("diff", folder.name, str(copy))
    assert code == 0
    assert "parameters: the same" in shown and "differ " not in shown
    assert "  the same: test_mse, relative_mse, " in shown


def test_a_run_without_numbers_differs(runs, two):
    say(two[0], "failed")
    for words, why in ((two, "A is failed"), ((two[1], "depths=4"), "of two studies")):
        code, shown, _ = runs("diff", *map(str, words))
        assert code == 1 and f"numbers: nothing to compare: {why}" in shown


def test_the_tables_are_exported_to_the_terminal_and_to_files(runs, tmp_path):
    chosen = ("--study", "bn_only", "--where", "target_width == 3")
    code, shown, _ = runs("export", *chosen)
    rows = pd.read_csv(io.StringIO(shown))
    assert code == 0 and set(rows["target_width"]) == {3} and rows["run"].nunique() == 2
    assert set(rows["methods"]) == {"sgd", METHODS}
    code, said, _ = runs("export", *chosen, "--csv", str(tmp_path / "table.csv"))
    assert code == 0 and said == f"{tmp_path}/table.csv: {len(rows)} rows of 2 runs\n"
    assert (tmp_path / "table.csv").read_text() == shown
    code, shown, _ = runs("export", *chosen, "--latex", "--table", "curves")
    assert shown.startswith("% \\usepackage{booktabs}\n\\begin{tabular}") and "\\toprule" in shown
    assert "samples" in shown and "train\\_samples" not in shown, "what all rows share is left out"


def test_means_are_those_over_replicates_and_seeds_in_the_columns_that_vary(runs):
    chosen = ("--study", "bn_only", "--where", "target_width == 3 and methods == 'sgd'")
    rows = pd.read_csv(io.StringIO(runs("export", *chosen, "--table", "curves")[1]))
    code, shown, _ = runs("export", *chosen, "--mean", "--table", "curves")
    found = pd.read_csv(io.StringIO(shown))
    assert code == 0 and list(found) == ["samples", "mse_mean", "mse_std", "mse_n"]
    expected = rows.groupby("samples")["mse"].agg(["mean", "std", "count"])
    assert found.set_index("samples").to_numpy() == pytest.approx(expected.to_numpy())
    code, shown, _ = runs("export", *chosen, "--mean", "--latex", "--table", "curves")
    (mean, deviation, n), samples = expected.iloc[0], expected.index[0]
    assert f"{samples} & {mean_in_tex(mean, deviation)} & {n:.0f} \\\\" in shown
    code, shown, _ = runs("export", "--study", "bn_only", "--mean", "--latex")
    assert "teacher\\_construction" in shown
    assert "target\\_width & " in shown and "replicate" not in shown


def test_means_of_five_or_more_have_the_exact_interval_of_the_median(two):
    values = [3.0, 1.0, math.inf, 2.0, 5.0, 4.0, 7.0, 6.0]  # of one replicate each
    run = run_in(two[0])
    rows = pd.DataFrame({"samples": 8, "replicate": range(8), "mse": values, "run": run.key})
    rows = rows.assign(method="sgd", learning_rate=0.1, train_mse=1.0)
    assert not {"mse_low", "mse_high", "mse_median"} & {*export.means(rows[:4], [run], "other")}
    (found,) = export.means(rows, [run], "other").itertuples()
    assert (found.mse_median, found.mse_low, found.mse_high) == (4.0, 1.0, 7.0)
    (found,) = export.means(rows[:6], [run], "other").itertuples()
    assert (found.mse_low, found.mse_high) == (-math.inf, math.inf), "one of six has diverged"
    shared = rows.assign(mse=[0.5] * 6 + [math.nan] * 2)
    (found,) = export.means(shared, [run], "other").itertuples()
    assert found.n == 8, "diverged replicates are not equal"
    (found,) = export.means(shared[:6], [run], "other").itertuples()
    assert (found.n, found.mse_n) == (1, 1), "equal replicates share what was measured"
    rows["target_width"] = [2] * 5 + [3] * 3
    of_five, of_three = export.means(rows, [run], "other").itertuples()
    assert of_five.mse_low == -math.inf and of_three.mse_median == 6.0
    assert math.isnan(of_three.mse_low) and math.isnan(of_three.mse_high), "three are too few"


def test_what_is_printed_of_a_run_is_what_was_typed(tmp_path, monkeypatch, capsys):
    """Also a default and each swept value, and nothing that the scale or the figure sets."""
    here = f"outputs={tmp_path}"
    typed = ["study=example20", "scale=smoke", "seed=0", "exponents=[0.8],[0.6,0.9]", here]
    assert run_here(["-m", *typed], monkeypatch) == 0
    ending = capsys.readouterr().out
    assert "2 runs of example20 scale=smoke seed=0: " in ending and "grid" not in ending
    assert run_here(["figure=bottleneck-example20", "scale=smoke", here], monkeypatch) == 0
    capsys.readouterr()
    assert run_here(["runs", "list", here], monkeypatch) == 0
    words = set(re.findall(r"(?m)^(.*?) +[0-9a-f]{8} complete", capsys.readouterr().out))
    assert words == {
        "example20 scale=smoke seed=0 exponents=[0.8]",
        "example20 scale=smoke seed=0 exponents=[0.6,0.9]",
        "example20 figure=bottleneck-example20 scale=smoke",
    }
    assert run_here(["-m", *typed, "--dry-run"], monkeypatch) == 0
    names = {path.name for path in (tmp_path / "runs" / "example20").iterdir()}
    assert any("exponents=" in name and "scale" not in name for name in names)


def test_a_run_is_found_by_its_note(tmp_path, monkeypatch, capsys):
    here = f"outputs={tmp_path}"
    for seed, note in ((0, "first"), (1, "'second try'")):
        words = ["study=example20", "scale=smoke", f"seed={seed}", f"note={note}", here]
        assert run_here(words, monkeypatch) == 0
    capsys.readouterr()
    for condition, seed in (("note=first", 0), ("note == 'second try'", 1)):
        assert run_here(["runs", "list", "--json", "--where", condition, here], monkeypatch) == 0
        (found,) = json.loads(capsys.readouterr().out)
        assert found["parameters"]["seed"] == seed


def test_the_list_is_given_to_programs_with_all_parameters(runs, outputs):
    code, shown, _ = runs("list", "--json", "--where", "target_width == 2")
    (found,) = json.loads(shown)
    folder = one(outputs, target_width=2)
    assert code == 0 and found["folder"] == str(folder) and found["hash"] == folder.name[-8:]
    assert found["status"] == "complete" and found["seconds"] > 0 and not found["stale"]
    assert found["parameters"]["target_width"] == 2 and "sgd" in found["parameters"]["methods"]
    assert json.loads(runs("list", "--json", "--status", "failed")[1]) == []


def test_clean_shows_first_and_removes_only_when_it_is_told_to(runs, outputs):
    folder = say(one(outputs, target_width=2), "interrupted")
    (folder / "checkpoint.safetensors").write_bytes(b"\0" * 200_000)
    code, shown, _ = runs("clean")
    assert code == 0 and listed(shown) == [folder.name[-8:]]
    assert "1 run, 0.2 MB: --yes removes the folders" in shown
    assert "1 with a checkpoint: their command goes on where it stopped" in shown
    assert folder.exists()
    code, shown, _ = runs("clean", "--yes")
    assert code == 0 and shown == f"removed {folder}\n" and not folder.exists()
    code, shown, _ = runs("clean", "--yes")
    assert code == 0 and shown == f"nothing to remove under {outputs}\n"
    assert runs("check")[:2] == (0, "3 runs, 0 damaged\n")
