"""Where and how to run: everything about a command that does not change its numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.errors import InputError
from runner.studies import check_fields, parameter

if TYPE_CHECKING:
    import torch


@dataclass
class Settings:
    """The keys that every command knows beside the parameters of its study."""

    study: str = parameter("which experiment", "bn_only")
    scale: str = parameter("how big: smoke, quick or paper", "quick")
    figure: str | None = parameter("which figure's sweep to run and draw", None)
    device: str = parameter("auto, cpu, cuda or cuda:<number>", "auto")
    outputs: str = parameter("folder of runs and figures", "outputs")
    force: bool = parameter("run again what is complete", False)
    fail_fast: bool = parameter("stop a sweep at its first failure", False)
    threads: int | None = parameter("CPU threads of one run; null: all cores", 1, minimum=1)
    wait: bool = parameter("wait for another process that computes the same run", True)
    checkpoint_seconds: float = parameter("seconds between checkpoints", 20.0, minimum=0)
    data_folder: str | None = parameter(
        "folder of the downloaded datasets; null: the user's cache", None
    )
    source: dict[str, Any] = parameter("where the dataset comes from: conf/data/<dataset>.yaml", {})

    def __post_init__(self) -> None:
        check_fields(self)

    def folder(self) -> Path:
        """The outputs folder."""
        return Path(self.outputs).expanduser()


def torch_device(name: str) -> "torch.device":
    """The device of that name; `auto` is CUDA where there is one, the CPU otherwise.

    Raises InputError when the name is unknown or the device is not there.
    """
    import torch  # late: a command that computes nothing starts without torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdigit()) or name.endswith(":"):
        raise InputError(f"device={name} is not known: choose from auto, cpu, cuda, cuda:<number>")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device={name} is not there: torch sees {torch.cuda.device_count()} CUDA devices."
            " Use device=auto or device=cpu."
        )
    return torch.device(name)
