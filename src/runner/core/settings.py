"""Where and how to run: everything about a command that does not change its numbers.

The device and the number of threads change how sums are rounded.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.folders import outputs_at
from runner.core.studies import check_fields, parameter


@dataclass
class Settings:
    """The keys that every command knows beside the parameters of its study."""

    study: str = parameter("which experiment", "bn_only")
    scale: str = parameter("how big: smoke, quick, medium or paper", "quick")
    figure: str | None = parameter("which figure's sweep to run and draw", None)
    device: str = parameter("auto, cpu, cuda or cuda:<number>", "auto")
    outputs: str = parameter("folder of runs and figures", "outputs")
    force: bool = parameter("run again what is complete", False)
    stale: str = parameter(
        "complete runs of other code: keep them and say so, recompute them, or refuse",
        "keep",
        choices=("keep", "recompute", "refuse"),
    )
    fail_fast: bool = parameter("stop a sweep at its first failure", False)
    threads: int | None = parameter(
        "CPU threads of one run; null: all cores", 1, minimum=1, maximum=1024
    )
    wait: bool = parameter("wait for another process that computes the same run", True)
    checkpoint_seconds: float = parameter("seconds between checkpoints", 20.0, minimum=0)
    data_folder: str | None = parameter(
        "folder of the downloaded datasets; null: the user's cache", None
    )
    keep_weights: bool = parameter("leave trained weights in the run: run.weights()", False)
    tracker: str | None = parameter(
        "where rows go beside the tables as they come: <outputs>/tracking/<tracker>; null: nowhere",
        None,
        choices=("tensorboard", "mlflow", "wandb"),
    )
    submit_only: bool = parameter(
        "queue a sweep on Slurm, with a job that draws its figure, and return at once", False
    )
    objective: str | None = parameter(
        "what a run returns to a sweeper that searches: table.column, its mean at the end", None
    )
    style: str = parameter(
        "how a figure is drawn: for the screen, or for paper, a column or a page of two columns"
        " wide and in LaTeX's fonts",
        "screen",
        choices=("screen", "paper"),
    )
    source: dict[str, Any] = parameter("where the dataset comes from: conf/data/<dataset>.yaml", {})

    def __post_init__(self) -> None:
        check_fields(self)
        self.folder()

    def folder(self) -> Path:
        """Return the outputs folder. Raises InputError when `outputs` names none."""
        return outputs_at(self.outputs)
