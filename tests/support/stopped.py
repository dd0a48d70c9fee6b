"""A run that is stopped after chosen checkpoints and continued."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from runner.core.settings import Settings
from runner.runs.checkpoint import Checkpoint
from runner.runs.execution import execute
from runner.runs.run import Run


@contextmanager
def interrupted(after: int = 1) -> Iterator[None]:
    """Interrupt a run within the block after it has written `after` checkpoints."""
    write, written = Checkpoint.write, []

    def interrupting(self, path):
        write(self, path)
        written.append(path)
        if len(written) == after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpoint, "write", interrupting)
        yield


def compute_with_stops(
    run: Run,
    stops: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
    device: str = "cpu",
    keep_weights: bool = False,
) -> int:
    """Compute a run, interrupted after each number of checkpoints in `stops`; return their number.

    The returned number counts all checkpoints that were written.
    """
    settings = Settings(
        outputs=str(run.folder.parents[2]),
        device=device,
        checkpoint_seconds=0,
        keep_weights=keep_weights,
    )
    write, written = Checkpoint.write, []

    def interrupting(self, path):
        write(self, path)
        written.append(1)
        if len(written) in stops:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", interrupting)
        for _ in stops:
            with pytest.raises(KeyboardInterrupt):
                execute(run, settings)
        execute(run, settings)
    return len(written)


def bytes_of(run: Run) -> dict[str, bytes]:
    """Return the tables of a run."""
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}
