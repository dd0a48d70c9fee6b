"""Signals that announce the end of a process: the checkpoint comes first, and nothing is lost."""

import signal
import time

import pytest

from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import execution, signals
from runner.runs.execution import execute
from runner.runs.run import Run

TINY = {"target_width": 3, "train_samples": 6400, "test_samples": 500, "batch_size": 32}
ANNOUNCING = pytest.mark.parametrize("number", signals.ANNOUNCING, ids=lambda number: number.name)


def settings(outputs) -> Settings:
    return Settings(outputs=str(outputs), device="cpu", checkpoint_seconds=1000)


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


@pytest.fixture
def run(tmp_path):
    return Run(BnOnly(**TINY, replicates=2), tmp_path)


@pytest.fixture
def whole(tmp_path):
    run = Run(BnOnly(**TINY, replicates=2), tmp_path / "whole")
    execute(run, settings(tmp_path / "whole"))
    return tables(run)


@pytest.fixture
def announced(monkeypatch):
    """Sends a signal in the middle of the run, when a checkpoint is not due for long."""

    def send(number: signal.Signals) -> None:
        checkpoint, calls = execution._Execution._checkpoint, []

        def counting(self, make_state):
            calls.append(self)
            if len(calls) == 5:
                signal.raise_signal(number)
            checkpoint(self, make_state)

        monkeypatch.setattr(execution._Execution, "_checkpoint", counting)

    return send


@pytest.fixture
def handler(monkeypatch):
    """Sets what a signal did before the run: returns the signals that came to it."""
    before = {number: signal.getsignal(number) for number in signals.ANNOUNCING}
    received = []

    def set_to(error: BaseException | None) -> list[int]:
        def handle(number, frame):
            received.append(number)
            if error is not None:
                raise error

        for number in signals.ANNOUNCING:
            signal.signal(number, handle)
        return received

    yield set_to
    for number, each in before.items():
        signal.signal(number, each)


@ANNOUNCING
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), RuntimeError("no requeue")])
def test_a_checkpoint_comes_before_the_end(run, whole, announced, handler, number, error, tmp_path):
    received = handler(error)
    with pytest.MonkeyPatch.context():
        announced(number)
        with pytest.raises(type(error)):
            execute(run, settings(tmp_path))
    assert received == [number]
    assert run.status() == "interrupted" and not (run.folder / "error.txt").exists()
    assert (run.folder / "checkpoint.safetensors").exists()
    assert signal.getsignal(number) not in (signal.SIG_DFL, signals.Notice.receive)
    execute(run, settings(tmp_path))
    assert "goes on:" in (run.folder / "run.log").read_text()
    assert tables(run) == whole


@ANNOUNCING
def test_a_signal_that_ends_nothing_leaves_the_run_going(
    run, whole, announced, handler, number, tmp_path
):
    received = handler(None)
    announced(number)
    execute(run, settings(tmp_path))
    assert received == [number] and run.is_complete() and tables(run) == whole


def test_without_a_checkpoint_in_time_the_process_ends_all_the_same(handler, monkeypatch):
    monkeypatch.setattr(signals, "GRACE_SECONDS", 0.05)
    handler(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt), signals.held():
        signal.raise_signal(signal.SIGTERM)
        time.sleep(5)


def test_the_same_signal_again_waits_for_nothing(handler):
    handler(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt), signals.held() as notice:
        signal.raise_signal(signal.SIGTERM)
        assert notice.is_given
        signal.raise_signal(signal.SIGTERM)


def test_a_run_that_ends_meanwhile_is_complete(run, handler, monkeypatch, tmp_path):
    handler(KeyboardInterrupt())
    real = execution._Execution._iterate

    def last_moment(self):
        real(self)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(execution._Execution, "_iterate", last_moment)
    with pytest.raises(KeyboardInterrupt):
        execute(run, settings(tmp_path))
    assert run.is_complete() and run.status() == "complete"
