"""Pre-registered is what stood before the numbers, of a seed that was not kept before."""

import json

import pandas as pd
import pytest
from reference import keep

from runner.compose.orders import paper_figure
from runner.core.settings import Settings
from runner.results.claims import claims_of
from runner.results.finishing import place
from runner.runs.execution import execute

NAME = "bottleneck-example20"
SETTINGS = ["scale=smoke", "threads=1"]


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Write empty files for pictures, which take long and at which nothing here looks."""

    def touch(picture, stem):
        for end in ("png", "body.png", "pdf", "svg"):
            place(stem, end).touch()

    monkeypatch.setattr("runner.results.figure.save", touch)


@pytest.fixture
def figure(tmp_path):
    return paper_figure(NAME, [*SETTINGS, f"outputs={tmp_path}"])


def compute(figure) -> None:
    for run in figure.runs:
        execute(run, Settings(outputs=str(figure.outputs), device="cpu"))


def with_other_rule(monkeypatch, figure) -> str:
    """Needs above those of its quantities change the digest of the first claim."""
    first, *others = claims_of(NAME, figure.study)
    changed = type(first)(
        first.name, first.statement, first.source, first.rule, needs={"depth": 99}
    )
    for module in ("runner.results.claims", "reference"):
        monkeypatch.setattr(f"{module}.claims_of", lambda *_: [changed, *others])
    return first.name


def kept(figure, reference) -> pd.Series:
    figure.make()
    folder = keep(NAME, [*SETTINGS, f"outputs={figure.outputs}"], reference)
    return pd.read_csv(folder / "claims.csv").set_index("claim")["standing"]


@pytest.mark.long
def test_rules_that_stood_before_the_runs_are_pre_registered(figure, tmp_path, monkeypatch):
    figure.register_rules()
    compute(figure)
    assert set(kept(figure, tmp_path / "reference")) == {"pre-registered"}
    assert set(kept(figure, tmp_path / "reference")) == {"pre-registered"}, "as before"
    changed = with_other_rule(monkeypatch, figure)
    found = kept(figure, tmp_path / "other")
    assert found[changed] == "exploratory" and (found.drop(changed) == "pre-registered").all()
    assert "exploratory" not in figure.make(), "at smoke nothing is judged"
    monkeypatch.setattr("runner.results.figure.judges", lambda scale: True)
    note = "note: exploratory, as no rule was stored before the numbers: "
    assert f"{note}{changed}\n" in figure.make()
    figure.path("rules.json").unlink()
    assert f"{note}all verdicts\n" in figure.make()


def test_rules_that_were_written_down_after_the_first_run_was_begun_are_none(figure, monkeypatch):
    figure.register_rules()
    figure.runs[0].folder.mkdir(parents=True)
    changed = with_other_rule(monkeypatch, figure)
    figure.register_rules()
    assert changed not in figure.registered_rules
    assert len(figure.registered_rules) == len(claims_of(NAME, figure.study)) - 1


def test_rules_that_version_2_0_wrote_beside_the_picture_count(figure):
    figure.register_rules()
    path, rules = figure.path("rules.json"), figure.registered_rules
    path.rename(path.parents[1] / path.name)
    assert figure.registered_rules == rules != {}
    figure.runs[0].folder.mkdir(parents=True)
    figure.register_rules()
    assert path.exists() and figure.registered_rules == rules


def test_rules_of_other_runs_do_not_count(figure):
    figure.register_rules()
    about = json.loads(figure.path("rules.json").read_text())
    figure.path("rules.json").write_text(json.dumps(about | {"runs": ["other"]}))
    assert figure.registered_rules == {}


@pytest.mark.long
def test_a_known_seed_registers_nothing(figure, tmp_path):
    """The rules were written, but numbers of this seed were known under other rules before."""
    reference = tmp_path / "reference"
    folder = reference / "smoke" / NAME
    figure.register_rules()
    compute(figure)
    kept(figure, reference)
    rows = pd.read_csv(folder / "claims.csv")
    rows.loc[0, "digest"] = "another"
    rows.loc[1, "standing"] = "exploratory"
    rows.to_csv(folder / "claims.csv", index=False)
    found = kept(figure, reference)
    assert list(found[:2]) == ["exploratory"] * 2 and set(found[2:]) == {"pre-registered"}
    path = folder / "provenance.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"seeds": [7]}))
    assert set(kept(figure, reference)) == {"pre-registered"}
    assert json.loads(path.read_text())["earlier_seeds"] == [7]
    path.write_text(json.dumps(about | {"seeds": [7], "earlier_seeds": [0]}))
    assert set(kept(figure, reference)) == {"exploratory"}
    figure.path("rules.json").unlink()
    figure.register_rules()
    assert set(kept(figure, tmp_path / "late")) == {"exploratory"}, "written after the numbers"
