"""The report of a complete run is printed again without drawing, unless tables or code changed."""

import pytest

from runner.results import preview, reported
from runner.results.reported import report
from runner.runs.inventory import find
from runner.runs.run import OVERVIEW


@pytest.fixture
def run(outputs):
    """A complete run whose preview was drawn."""
    (info,) = [info for info in find(outputs) if info.study == "example20"]
    report(info.run)
    return info.run


def drawn(run, monkeypatch) -> int:
    """Report a run; return how often it was drawn."""
    draws, draw = [], preview.preview
    monkeypatch.setattr(preview, "preview", lambda run: draws.append(run) or draw(run))
    report(run)
    monkeypatch.undo()
    return len(draws)


def test_a_report_is_the_same_without_drawing(run, monkeypatch):
    picture = (run.folder / "overview.png").read_bytes()
    text = report(run)
    assert drawn(run, monkeypatch) == 0
    (run.folder / OVERVIEW).unlink()
    assert drawn(run, monkeypatch) == 1
    assert report(run) == text and (run.folder / "overview.png").read_bytes() == picture


@pytest.mark.parametrize("name", ["overview.png", OVERVIEW])
def test_a_missing_or_damaged_file_is_drawn_again(run, name, monkeypatch):
    (run.folder / name).unlink()
    assert drawn(run, monkeypatch) == 1
    (run.folder / OVERVIEW).write_text('{"made_of": ')
    assert drawn(run, monkeypatch) == 1


def test_changed_code_or_another_title_draws_again(run, monkeypatch):
    before = reported._made_of(run)
    monkeypatch.setattr(reported, "title_of", lambda kind, name: "another title")
    assert reported._made_of(run) != before
    assert (run.folder / OVERVIEW).read_text().count(before) == 1
