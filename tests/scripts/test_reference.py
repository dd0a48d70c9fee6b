"""The reference: what is kept, drawn from it, and left out of it."""

import hashlib
import json
import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest
import warm
from reference import (
    JUDGED,
    REFERENCE,
    RULES,
    draw_all,
    judge_all,
    keep,
    main,
)
from repository import REPOSITORY

from runner.commands.compare import compare
from runner.commands.gallery_data import claims_of, collect
from runner.commands.kept import FROM_REFERENCE, KeptFigure, read_csv, read_tables
from runner.commands.report import counts
from runner.compose.orders import paper_figure
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.results import figure as figures
from runner.results.drawing import drawing_of
from runner.results.figure import FILES, Figure
from runner.results.finishing import place
from runner.runs.execution import execute

NAME = "bottleneck-example20"
"""Of the canonical figures the soonest made."""


def compute(typed):
    """The runs of the figure, and its drawing."""
    variant = paper_figure(NAME, typed)
    for run in variant.runs:
        execute(run, Settings(outputs=str(variant.outputs), device="cpu"))
    variant.make()
    return variant


def overrides(outputs):
    return ["scale=smoke", f"outputs={outputs}", "threads=1", "depths=[8,32,128]"]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    assert compute(overrides(folder)).is_canonical
    return folder


@pytest.fixture
def made(made_once, tmp_path):
    """The overrides that have made a canonical figure, and its files for one test to change."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    return overrides(tmp_path)


def test_a_figure_drawn_from_the_reference_is_the_figure(made, tmp_path):
    folder = keep(NAME, made, tmp_path / "reference")
    assert (folder / "caption.txt").read_text().startswith("Paper D, Example 20: ")
    assert compare(NAME, made, tmp_path / "reference").empty
    again = tmp_path / "again" / FROM_REFERENCE / "smoke"
    assert list(draw_all(tmp_path / "reference", tmp_path / "again")) == [again / f"{NAME}.png"]
    for end in FILES:
        drawn = place(tmp_path / "figures" / "smoke" / NAME, end).read_bytes()
        assert place(again / NAME, end).read_bytes() == drawn


def test_a_picture_of_the_reference_has_its_body_and_its_words_beside_it(made, tmp_path):
    """The same files as of the figure; drawn again where one is missing, or a verdict changes."""
    folder = keep(NAME, made, tmp_path / "reference")
    figure = KeptFigure.of(folder, tmp_path / "again")
    picture, body = figure.picture(), figure.picture("body.png")
    for end in ("png", "body.png", "header.json"):
        drawn = place(tmp_path / "figures" / "smoke" / NAME, end).read_bytes()
        assert figure.path(end).read_bytes() == drawn, end
    since = picture.stat().st_mtime_ns
    assert figure.picture().stat().st_mtime_ns == since, "it is there"
    body.unlink()
    assert figure.picture("body.png") == body and body.exists()
    assert picture.stat().st_mtime_ns == since, "only what is missing is drawn"
    kept = pd.read_csv(folder / "claims.csv").assign(verdict="fails")
    kept.to_csv(folder / "claims.csv", index=False)
    figure.picture()
    assert not body.exists(), "it is of other verdicts"


def test_a_claim_that_no_longer_comes_out_as_kept_is_an_error(made, tmp_path):
    folder = keep(NAME, made, tmp_path / "reference")
    kept = pd.read_csv(folder / "claims.csv")
    kept["verdict"] = kept["verdict"].map({"holds": "fails"}).fillna("holds")
    kept.to_csv(folder / "claims.csv", index=False)
    with pytest.raises(InputError, match="differ from the kept ones"):
        list(draw_all(tmp_path / "reference", tmp_path / "again"))
    found = compare(NAME, made, tmp_path / "reference")
    assert set(found["table"]) == {"claims"} and len(found) == len(kept)


def test_only_a_current_figure_is_kept(made, tmp_path):
    (tmp_path / "figures" / "smoke" / f"{NAME}.png").unlink()
    with pytest.raises(InputError, match=f"{NAME} is not drawn yet"):
        keep(NAME, made, tmp_path / "reference")
    paper_figure(NAME, made).make()
    assert paper_figure(NAME, made).is_current()
    paper_figure(NAME, made).runs[0].result_path.unlink()
    assert not paper_figure(NAME, made).is_current()


def test_another_style_draws_the_figure_again_and_makes_it_no_other(made, tmp_path):
    path = tmp_path / "figures" / "smoke" / f"{NAME}.png"
    screen, kept = path.read_bytes(), {p.name for p in path.parent.glob("*.png")}
    paper = paper_figure(NAME, [*made, "style=paper"])
    assert paper.is_canonical and not paper.is_current()
    paper.make()
    assert paper.is_current() and not paper_figure(NAME, made).is_current()
    assert path.read_bytes() != screen and {p.name for p in path.parent.glob("*.png")} == kept
    paper_figure(NAME, made).make()
    assert path.read_bytes() == screen


def test_tables_that_nothing_reads_are_not_kept(made, tmp_path, monkeypatch):
    drawing = drawing_of(NAME, "example20")
    assert set(read_tables(keep(NAME, made, tmp_path / "all"))) == {"metrics"}
    unread = replace(drawing, unread=("metrics",))
    monkeypatch.setattr(figures, "drawing_of", lambda *_: unread)
    with pytest.raises(
        InputError, match="now give the verdict .*, not holds"
    ):  # the claims do read it
        keep(NAME, made, tmp_path / "some")


OVERRIDE = "depths=[4,8]"


def test_a_variant_stands_beside_its_figure_and_counts_nowhere(made, tmp_path):
    """Its files have a name of their own; the gallery shows it; the reference does not take it."""
    folder, none = tmp_path / "figures" / "smoke", tmp_path / "no reference"
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    canonical = collect(tmp_path, None, none)
    variant = compute([*made[:2], OVERRIDE])
    assert re.fullmatch(f"{NAME}-[0-9a-f]{{8}}", variant.name)
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert set(pd.read_csv(folder / f"{variant.name}.claims.csv")["figure"]) == {variant.name}
    entries = collect(tmp_path, None, none)
    names = [entry.name for entry in entries]
    assert names.index(variant.name) == names.index(NAME) + 1
    assert len(entries) == len(canonical) + 1
    about = entries[names.index(variant.name)].results[0].about
    assert about["overrides"] == [OVERRIDE]
    assert about["command"] == f"runner figure={NAME} scale=smoke '{OVERRIDE}'"
    with_variant, without = (claims_of(each).query("is_main") for each in (entries, canonical))
    assert counts(with_variant) == counts(without)
    assert sum(counts(with_variant)["paper"].values()) == 3
    for what in (keep, compare):
        with pytest.raises(InputError, match="cannot be changed: omit depths"):
            what(NAME, [*made[:2], OVERRIDE], tmp_path / "reference")


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        (["device=cpu", "force=true", "threads=2", "outputs=elsewhere", "wait=false"], True),
        (["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "++device=cpu"], True),
        (["target_width=5,3"], False),
        (["target_width=4"], False),
        (["seed=51", "schedule=constant"], True),
        (["seed=1"], False),
        (["seed=1,2"], False),
        (["size=bn_only/quick"], False),
        (["grids.smoke=[{target_width: 4}]"], False),
    ],
)
def test_a_figure_is_canonical_when_its_runs_are(typed, canonical):
    variant = paper_figure("fig4", ["scale=smoke", *typed])
    assert variant.is_canonical == canonical
    if canonical:
        plain = paper_figure("fig4", ["scale=smoke"])
        assert [run.config for run in variant.runs] == [run.config for run in plain.runs]
        assert not variant.overrides
    else:
        assert variant.overrides == tuple(typed)
        again = paper_figure("fig4", ["scale=smoke", "outputs=elsewhere", *typed, "device=cpu"])
        assert again.name == variant.name != "fig4", "the name depends on the runs alone"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: pd.concat([rows, rows.tail(2)]), "metrics: 2 rows twice"),
        (lambda rows: rows.assign(max_error=1.0), "now give the verdict undecided, not holds"),
    ],
)
def test_what_is_kept_has_to_follow_from_its_tables(made, tmp_path, monkeypatch, change, message):
    """A run is changed together with its digests; what was kept before stays."""
    before = keep(NAME, made, tmp_path / "reference")
    files = {path.name: path.read_bytes() for path in before.iterdir()}
    run = paper_figure(NAME, made).runs[0]
    path = run.folder / "metrics.csv"
    change(pd.read_csv(path)).to_csv(path, index=False)
    result = json.loads(run.result_path.read_text())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    result["tables"]["metrics"] |= {"bytes": path.stat().st_size, "sha256": digest}
    run.result_path.write_text(json.dumps(result))
    monkeypatch.setattr(Figure, "is_current", lambda figure: True)
    with pytest.raises(InputError, match=message):
        keep(NAME, made, tmp_path / "reference")
    assert {path.name: path.read_bytes() for path in before.iterdir()} == files
    assert {path.name for path in (tmp_path / "reference").iterdir()} == {"smoke", JUDGED}


SIX = (
    "quick/bottleneck-example20",
    "quick/conserved",
    "quick/fig4",
    "quick/rank-fig3b",
    "medium/rank-fig7",
    "paper/fig5",
)
"""Figures of all papers and scales; test_every_figure.py judges the numbers of every figure."""


def test_judging_the_unchanged_reference_changes_nothing(tmp_path, capsys):
    """Rules, verdicts, captions, numbers. If it fails on purpose: scripts/reference.py judge."""
    numbers = read_csv(REFERENCE / JUDGED, dtype={"point": str})
    places = numbers["scale"] + "/" + numbers["figure"]
    numbers[places.isin(SIX)].to_csv(tmp_path / JUDGED, index=False, float_format="%.6g")
    for name in (*SIX, RULES):
        copy = shutil.copytree if name in SIX else shutil.copy
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(REFERENCE / name, tmp_path / name)
    judge_all(tmp_path)
    assert not capsys.readouterr().out


@pytest.fixture
def judged(tmp_path):
    """A reference of one figure, pre-registered and judged; its claims and its numbers."""
    folder = tmp_path / "quick" / "bottleneck-example20"
    shutil.copytree(REFERENCE / "quick" / "bottleneck-example20", folder)
    judge_all(tmp_path)
    claims = pd.read_csv(folder / "claims.csv").assign(standing="pre-registered")
    claims.to_csv(folder / "claims.csv", index=False)
    return folder / "claims.csv", tmp_path / JUDGED


def standings(path):
    return list(pd.read_csv(path)["standing"])


def test_a_caption_names_the_commits_of_runs_of_earlier_code(judged):
    figure = KeptFigure.of(judged[0].parent)
    assert "earlier code" not in figure.caption()
    path = figure.folder / "provenance.json"
    about = json.loads(path.read_text())
    about["runs"][0] |= {"code": "0" * 16, "commit": "abcdef01" * 5}
    path.write_text(json.dumps(about))
    assert figure.caption().endswith("Computed by earlier code, at commit abcdef01.\n")


@pytest.mark.parametrize(("factor", "standing"), [(1 + 1e-13, "pre-registered"), (1.01, "expl")])
def test_numbers_that_differ_by_rounding_stay_as_they_are_stored(judged, factor, standing):
    path, numbers = judged
    for each in judged:
        rows = pd.read_csv(each)
        columns = rows.columns.intersection(["value", "estimate", "low", "high", "p_value"])
        rows[columns] *= factor
        rows.to_csv(each, index=False)
    before = [each.read_bytes() for each in judged]
    judge_all(path.parents[2])
    assert ([each.read_bytes() for each in judged] == before) == (factor < 1.001)
    assert all(each.startswith(standing) for each in standings(path))


def test_a_verdict_under_another_rule_is_exploratory(judged, capsys):
    path, _ = judged
    rows = pd.read_csv(path)
    rows.loc[0, "digest"] = "another"
    rows.iloc[:-1].to_csv(path, index=False)
    judge_all(path.parents[2])
    assert str(path) in capsys.readouterr().out
    stay = ["pre-registered"] * (len(rows) - 2)
    assert standings(path) == ["exploratory", *stay, "exploratory"]
    assert "another" not in set(pd.read_csv(path)["digest"])


def test_a_figure_that_is_kept_again_keeps_its_numbers_too(made, tmp_path):
    folder = keep(NAME, made, tmp_path / "reference")
    claims = pd.read_csv(folder / "claims.csv").assign(standing="pre-registered")
    claims.to_csv(folder / "claims.csv", index=False)
    first = (tmp_path / "reference" / JUDGED).read_bytes()
    judge_all(tmp_path / "reference")
    assert set(standings(folder / "claims.csv")) == {"pre-registered"}
    keep(NAME, made, tmp_path / "reference")
    assert (tmp_path / "reference" / JUDGED).read_bytes() == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["judge", "scale=quick"], "judge takes no further words"),
        (["draw", "fig4"], "To see one: runner show fig4"),
        (["draw", "outputs=/proc/x"], "outputs=/proc/x cannot be used"),
        (["keep", "outputs=/proc/x"], "outputs=/proc/x cannot be used"),
        (["keep", "outputs="], "outputs='' is not a folder"),
    ],
)
def test_wrong_words_end_in_one_line(words, said):
    with pytest.raises(InputError, match=re.escape(said)) as error:
        main(words)
    assert "\n" not in str(error.value)


def test_an_error_of_the_script_is_one_line_and_code_2():
    done = warm.run(str(REPOSITORY / "scripts" / "reference.py"), "judge", "scale=quick")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "judge takes no further words" in done.stderr


def test_what_is_not_drawn_is_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reference.figure_names", lambda *_: ["fig4"])  # composing all takes long
    assert main(["keep", "scale=smoke", f"outputs={tmp_path}"]) == 0
    assert "left out: fig4 is not drawn yet" in capsys.readouterr().err
