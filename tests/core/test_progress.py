"""Progress: lines, the time left, and numbers that mean something."""

import io
import logging
import time

import pytest
import torch

from runner.core import progress
from runner.core.progress import Progress, duration, single_runs_silent


@pytest.fixture
def lines(monkeypatch, caplog):
    """Return the logged lines; a second passes in a twentieth of one."""
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.05)
    monkeypatch.setattr(progress, "_bars", False)
    monkeypatch.setattr(logging.getLogger("runner"), "propagate", True)
    caplog.set_level(logging.INFO, progress.log.name)
    return caplog


def advance(bar: Progress, seconds: float) -> None:
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        bar.update()
        time.sleep(0.005)


def test_the_time_left_is_that_of_the_speed(lines):
    with Progress(10**12, "training") as bar:
        advance(bar, 0.5)
    assert " of 1000000000000 steps, about " in lines.messages[-1] and lines.messages[-1].endswith(
        " years left"
    )


def test_a_run_that_goes_on_counts_what_was_done_but_not_its_speed(lines):
    bar = Progress(1000, "training", done=500)
    bar.start_t -= 10
    assert bar.text() == "training: 500 of 1000 steps"
    bar.update(100)
    assert bar.text() == "training: 600 of 1000 steps, about 40 s left"
    bar.close()


def test_a_slow_first_step_does_not_count(lines):
    with Progress(100, "training") as bar:
        bar.start_t -= 20  # the first step takes so long, since it compiles code
        bar.update()
        assert bar.time_left() == ""
        bar.first = (1, bar.first[1] - 3)
        bar.update(9)
        assert bar.time_left() == "about 30 s left"


def test_a_long_first_unit_counts(lines):
    with Progress(4, "training", unit="networks") as bar:
        bar.start_t -= 20
        bar.update()
        assert bar.time_left() == "about 60 s left"


def test_a_line_shows_the_numbers(lines):
    with Progress(1000, "training") as bar:
        advance(bar, 0.2)
        time.sleep(4 * bar.mininterval)
        bar.update(loss=lambda: 0.25, rank=torch.tensor(3))
    assert lines.messages[-1].endswith("loss 0.25, rank 3")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2, 6], "median loss 2"),
        ([float("nan"), 2, float("inf"), 6], "median loss 4 (2 of 4 diverged)"),
        ([float("nan"), float("nan")], "loss (2 of 2 diverged)"),
        ([float("nan")], "loss nan"),
    ],
)
def test_of_several_networks_the_median_is_shown_and_how_many_diverged(lines, values, text):
    with Progress(10, "training") as bar:
        time.sleep(4 * bar.mininterval)
        bar.update(loss=torch.tensor(values))
    assert lines.messages[-1].endswith(f", {text}")


def test_a_number_that_is_not_shown_is_not_computed(lines):
    with Progress(2, "training") as bar:
        bar.update(loss=lambda: 1 / 0)


def test_the_stage_of_a_bar_can_change(lines):
    with Progress(2, "training") as bar:
        bar.what = "choosing learning rates"
        assert bar.what in bar.text() and "training" not in bar.text()


def test_a_bar_shows_the_line_and_goes(monkeypatch, lines):
    monkeypatch.setattr(progress, "_bars", True)
    monkeypatch.setattr(progress.sys, "stderr", terminal := io.StringIO())
    with Progress(2, "training") as bar:
        time.sleep(0.2)
        bar.update(loss=0.5)
        bar.refresh()
    assert "| training: 0 of 2 steps" in terminal.getvalue()
    assert "| training: 1 of 2 steps, loss 0.5" in terminal.getvalue() and not lines.messages
    assert terminal.getvalue().endswith("\r")


def test_single_runs_show_nothing_during_a_sweep(monkeypatch):
    monkeypatch.setattr(progress, "_bars", True)
    record = logging.LogRecord(progress.log.name, logging.INFO, "", 0, "starts", None, None)
    with single_runs_silent():
        assert not Progress(2, "training").is_bar and not progress.is_shown(record)
        assert progress.is_shown(logging.makeLogRecord({"name": progress.SWEEP_LOG}))
    assert Progress(2, "training").is_bar and progress.is_shown(record)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1 s"),
        (150, "about 2.5 min"),
        (115 * 60, "about 120 min"),
        (4 * 3600, "about 4 hours"),
        (1e12, "about 32000 years"),
    ],
)
def test_a_time_in_the_unit_that_suits_it(seconds, text):
    assert duration(seconds) == text
