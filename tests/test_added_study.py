"""A study of one's own, as `runner new study` writes it."""

import re
import sys

import pandas as pd
import pytest
import warm
from hydra.core.config_store import ConfigStore
from in_process import run

from runner.commands.new import write
from runner.core import catalogue

ROOM = ("--config-dir", "walks")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the package `walks`, in which is the study `distance`; forgotten afterwards."""
    write("distance", "walks", tmp_path)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    catalogue.forget()
    catalogue._config_of.cache_clear()
    for group in ConfigStore.instance().repo.values():
        if isinstance(group, dict):
            group.pop("distance.yaml", None)
            group.pop("distance", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "walks"]:
        del sys.modules[name]


def python(place, *arguments):
    """`python -m <arguments>` in the folder."""
    return warm.run("-m", *arguments, cwd=place)


def test_it_is_a_full_citizen(place, monkeypatch, capsys):
    """It runs, its figure is drawn and judged; help, reports, lists and the workers of a sweep know
    it; and its own test passes."""
    monkeypatch.chdir(place)

    def shown(*words: str) -> str:
        assert run([*ROOM, *words], monkeypatch) == 0
        return capsys.readouterr().out

    smoke = ("scale=smoke", "device=cpu")
    assert "metrics.csv  50 rows" in shown("study=distance", *smoke, "width=9")
    (picture,) = place.glob("outputs/runs/distance/*/overview.png")
    assert picture.stat().st_size > 5000, "without an overview there is a default"
    *_, rules, path = (text := shown("figure=distance", *smoke)).splitlines()
    claims = pd.read_csv(place / "outputs" / "figures" / "smoke" / "distance.claims.csv")
    assert list(claims["claim"]) == ["wide-learns-more"] and list(claims["verdict"]) == ["holds"]
    assert path.endswith("distance.png") and "1 claim holds." in text
    assert "--config-dir" in rules and rules.endswith("claims distance scale=smoke")
    assert "distance" in shown("--help")
    assert "units of the hidden layer" in shown("study=distance", "--help")
    joblib = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    shown("-m", "study=distance", *smoke, "width=4,9", *joblib)
    assert len(list(place.glob("outputs/runs/distance/*width=4*/result.json"))) == 1
    (drawn,) = place.glob("outputs/sweeps/*.csv")
    assert set(pd.read_csv(drawn)["number"]) == {"loss"}
    monkeypatch.setattr("runner.commands.report.REFERENCE", place / "none")  # fewer pictures
    shown("report", "scale=smoke")
    page = (place / "outputs" / "report" / "index.html").read_text()
    assert "Training loss of networks on digits against their width" in page
    assert "distance" in shown("runs", "list")
    done = python(place, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout


def test_changed_code_makes_runs_stale_and_claims_may_be_absent(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    command = [*ROOM, "figure=distance", "scale=smoke", "device=cpu"]
    (place / "walks" / "distance" / "claims.py").unlink()
    assert run(command, monkeypatch) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].endswith("distance.png") and "claim" not in printed.out
    assert "other code" not in printed.err
    path = place / "walks" / "distance" / "study.py"
    path.write_text(path.read_text().replace('"he"', '"pytorch"'))
    done = python(place, "runner", *command)
    assert "computed by other code and kept" in done.stderr, done.stderr
    for name in ("rows", "figures"):  # a column gets another name
        path = place / "walks" / "distance" / f"{name}.py"
        path.write_text(path.read_text().replace("loss", "risk"))
    done = python(place, "runner", *command)
    assert done.returncode == 2 and "their tables lack risk\n" in done.stderr, done.stderr
    assert "stale=recompute" in done.stderr.splitlines()[-1]
    assert python(place, "runner", *command, "stale=recompute").returncode == 0


def test_rows_may_be_in_the_module_of_the_study(place, monkeypatch, capsys):
    """As in version 2.0: row classes in study.py, with comments next to their fields."""
    monkeypatch.chdir(place)
    rows, study = (place / "walks" / "distance" / f"{name}.py" for name in ("rows", "study"))
    classes = rows.read_text().partition("\n\n\n")[2]
    classes = re.sub(r' = column\("(.*)"\)$', r"  # \1", classes, flags=re.M)
    assert "column(" not in classes and "width: int  # number" in classes
    rows.unlink()
    head, run_, rest = study.read_text().partition("def run(")
    head = re.sub(r"from walks.distance.rows .*\n", "", head)
    head = head.replace("Context,", "Context, Row,").replace("import torch", FIRST + "import torch")
    study.write_text(f"{head}{classes}\n\n{run_}{rest}")
    assert run([*ROOM, "study=distance", "scale=smoke", "device=cpu"], monkeypatch) == 0
    assert "metrics.csv  " in capsys.readouterr().out
    assert run([*ROOM, "study=distance", "--columns"], monkeypatch) == 0
    assert re.search(r"^  width: int \(key\)$", capsys.readouterr().out, re.M)


FIRST = "from dataclasses import dataclass\nfrom typing import ClassVar\n\n"

BROKEN = [
    ("config.py", None, "study=distance", "conf/study/distance.yaml has no study"),
    ("study.py", None, "study=distance", "walks/distance/study.py is missing"),
    ("../conf/study/distance.yaml", None, "study=distance", "has no conf/study/distance.yaml"),
    (
        "../conf/size/distance.yaml",
        None,
        "study=distance",
        "conf/size/distance.yaml is missing: it sets",
    ),
    (
        "../conf/size/distance.yaml",
        ("smoke:", "small:"),
        "study=distance",
        "conf/size/distance.yaml has no scale smoke",
    ),
    ("../conf/figure/distance.yaml", None, "figure=distance", "figure=distance is unknown"),
    ("figures.py", None, "figure=distance", "FIGURES of walks/distance/figures.py"),
    ("study.py", ("def run(", "def go("), "study=distance", "no run(config, context)"),
    ("rows.py", ("(Row)", ""), "figure=distance", "study.py has no row class"),
    (
        "rows.py",
        ("    table: C", "    tables: C"),
        "study=distance",
        "rows.py: Trained needs a sep",
    ),
    (
        "study.py",
        ("def run(", "class Other(Trained): ...\n\n\ndef run("),
        "study=distance",
        "study.py: the row class Other is not in rows.py",
    ),
]
"""A file that is forgotten or not whole, what is typed, and what is said."""


@pytest.mark.parametrize(("file", "change", "typed", "message"), BROKEN)
def test_a_missing_part_is_named_before_anything_is_computed(
    place, file, change, typed, message, monkeypatch, capsys
):
    monkeypatch.chdir(place)
    path = place / "walks" / "distance" / file
    if change:
        path.write_text(path.read_text().replace(*change))
    else:
        path.unlink()
    assert run([*ROOM, typed, "scale=smoke", "device=cpu"], monkeypatch) == 2
    shown = capsys.readouterr().err
    assert message in shown and shown.count("error: ") == 1, shown
    assert not list(place.glob("outputs/runs/*/*/metrics.csv"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new", "study", "distance"], "tests/test_distance.py is there already"),
        (["new", "study", "bn_only"], "there is already a study bn_only"),
        (["new", "study", "3a"], "cannot be used as a name here"),
        (["--config-dir"], "argument --config-dir/-cd: expected one argument"),
        (["--config-dir", "json", "study=distance"], "another module's name"),
    ],
)
def test_wrong_words_are_refused(place, arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(place)
    if "json" in arguments:
        (place / "walks").rename(place / "json")
    assert run(arguments, monkeypatch) == 2
    assert message in capsys.readouterr().err
