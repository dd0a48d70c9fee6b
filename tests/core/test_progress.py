"""Lines of progress: from the first second on, and a word where the work is long."""

import logging
import time

import pytest

from runner.core import progress
from runner.core.progress import Progress, WhenShown, duration


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def lines(monkeypatch):
    """What is logged; a second passes in a twentieth of one."""
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.05)
    monkeypatch.setattr(progress, "_bars", False)
    progress.log.setLevel(logging.INFO)
    handler = Lines()
    progress.log.addHandler(handler)
    yield handler.texts
    progress.log.removeHandler(handler)


def advance(bar: Progress, seconds: float) -> None:
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        bar.update()
        time.sleep(0.005)


def test_a_unit_that_does_not_end_is_announced(lines):
    with Progress(3, "solving", unit="systems"):
        time.sleep(0.3)
    assert lines and lines[0].startswith("solving  0 of 3 systems")


def test_work_of_years_says_so_once(lines):
    with Progress(10**12, "training") as bar:
        advance(bar, 0.5)
    (foretold,) = [line for line in lines if "to go" in line]
    assert foretold.startswith("training: about ") and foretold.endswith(" years to go")


def test_short_work_foretells_nothing_and_shows_its_numbers(lines):
    with Progress(1000, "training") as bar:
        advance(bar, 0.2)
        time.sleep(2 * bar.pause)
        bar.update(loss=WhenShown(lambda: 0.25))
    assert "loss 0.25" in lines[-1]
    assert not [line for line in lines if "to go" in line]


def test_a_number_that_is_not_shown_is_not_computed(lines):
    with Progress(2, "training") as bar:
        bar.update(loss=WhenShown(lambda: 1 / 0))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3600, "about 60 minutes"),
        (4 * 3600, "about 4 hours"),
        (3 * 86400, "about 3 days"),
        (1e12, "about 3.2e+04 years"),
    ],
)
def test_a_time_in_the_unit_that_suits_it(seconds, text):
    assert duration(seconds) == text
