"""The keys of the command: those that a run knows too, and those that end with the launching."""

from dataclasses import dataclass

from runner.core.settings import Settings
from runner.core.studies import parameter


@dataclass
class CommandSettings(Settings):
    """What can be typed beside the parameters of a study."""

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
