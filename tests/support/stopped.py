"""A run that is stopped after chosen checkpoints, and goes on."""

from collections.abc import Sequence

import pytest

from runner.core.settings import Settings
from runner.runs import execution
from runner.runs.run import Run


def compute_with_stops(
    run: Run, stops: Sequence[int], monkeypatch: pytest.MonkeyPatch, device: str = "cpu"
) -> int:
    """Compute a run, which is interrupted when as many checkpoints have been written as listed.

    Returns how many were written in all.
    """
    settings = Settings(outputs=str(run.folder.parents[2]), device=device, checkpoint_seconds=0)
    checkpoint, written = execution._Execution._checkpoint, []

    def interrupting(self, make_state):
        checkpoint(self, make_state)
        written.append(1)
        if len(written) in stops:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(execution._Execution, "_checkpoint", interrupting)
        for _ in stops:
            with pytest.raises(KeyboardInterrupt):
                execution.execute(run, settings)
        execution.execute(run, settings)
    return len(written)


def bytes_of(run: Run) -> dict[str, bytes]:
    """The tables of a run."""
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}
