"""Settings of a command: all that does not change its numbers.

The device and the number of threads change how sums are rounded.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.errors import InputError
from runner.core.folders import outputs_at
from runner.core.studies import check_fields, parameter


@dataclass
class Settings:
    """The settings that every command accepts, in addition to the parameters of its study."""

    study: str = parameter("the experiment: runner --help lists the names", "bn_only")
    scale: str = parameter(
        "size of the experiment: smoke (seconds), quick (minutes), medium, paper (the paper's own)",
        "quick",
    )
    figure: str | None = parameter("figure to compute and draw; null: none", None)
    device: str = parameter(
        "where to compute: cpu, cuda, cuda:<number>; auto: a GPU if any", "auto"
    )
    note: str | None = parameter(
        "a note that is stored with the run, by which `runs list --where note=...` finds it", None
    )
    outputs: str = parameter("folder in which runs and figures are stored", "outputs")
    force: bool = parameter(
        "compute complete runs again; old numbers stay until the new ones are complete", False
    )
    stale: str = parameter(
        "complete runs of an older version of the code: keep them with a message, recompute them,"
        " or refuse to start",
        "keep",
        choices=("keep", "recompute", "refuse"),
    )
    fail_fast: bool = parameter("stop the sweep when one run fails", False)
    threads: int | None = parameter(
        "CPU threads that one run uses; null: all cores", 1, minimum=1, maximum=1024
    )
    wait: bool = parameter("wait while another process computes the same run; false: stop", True)
    checkpoint_seconds: float = parameter("seconds between two checkpoints", 20.0, minimum=0)
    data_folder: str | None = parameter(
        "folder with your own images, or with the files of Fashion-MNIST and CIFAR-10 (null: the"
        " user's cache)",
        None,
    )
    keep_weights: Any = parameter(
        "true: store the trained weights in the run, read by run.weights(); [0,1,10]: also those at"
        " these epochs or steps, as the study counts, read by run.weights(at=10)",
        False,
    )
    keep_checkpoint: bool = parameter(
        "store the last states of the run: the same run with more epochs then goes on from them",
        False,
    )
    tracker: str | None = parameter(
        "tracker that also gets every row, in <outputs>/tracking/<tracker>; null: none",
        None,
        choices=("tensorboard", "mlflow", "wandb"),
    )
    objective: str | None = parameter(
        "number that a run returns to a sweeper: table.column, the mean over its last rows",
        None,
    )
    style: str = parameter(
        "how figures are drawn: screen; paper: as wide as a page, in LaTeX's fonts; or the path of"
        " a style file",
        "screen",
    )
    source: dict[str, Any] = parameter("source of the dataset, see conf/data/<dataset>.yaml", {})

    def __post_init__(self) -> None:
        check_fields(self)
        self.folder()
        kept = self.keep_weights
        times: list = kept if isinstance(kept, list) else [] if type(kept) is bool else [None]
        if not all(type(time) in (int, float) and time >= 0 for time in times):
            listed = "a list of times of the training: keep_weights=[0,1,10]"
            raise InputError(f"keep_weights={kept} is neither true, false nor {listed}")

    def kept_times(self) -> list[float]:
        """Return the times of a training at which its weights are stored, too."""
        return [*map(float, self.keep_weights)] if isinstance(self.keep_weights, list) else []

    def folder(self) -> Path:
        """Return the path of the folder of outputs.

        Raises InputError if the setting `outputs` does not name a folder.
        """
        return outputs_at(self.outputs)
