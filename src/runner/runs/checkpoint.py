"""The checkpoint of an unfinished run: it is bound to its run, its code, and the rows before it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from runner.runs.files import open_to_read, replaced
from runner.runs.tables import Extent, extent_of


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood.

    run: its name; code: the fingerprint of the code; device: the kind that it was written on;
    seconds, cpu_seconds: worked so far, by the clock and by the processor; tables: what each table
    held.
    """

    run: str
    code: str
    device: str
    seconds: float
    cpu_seconds: float
    tables: dict[str, Extent]
    state: dict[str, Tensor]

    def write(self, path: Path) -> None:
        """Replace the checkpoint at `path` in one step."""
        tables = {name: asdict(extent) for name, extent in self.tables.items()}
        about = {
            "run": self.run,
            "code": self.code,
            "device": self.device,
            "seconds": str(self.seconds),
            "cpu_seconds": str(self.cpu_seconds),
            "tables": json.dumps(tables),
            "state": digest(self.state),
        }
        with replaced(path) as part:
            save_file(self.state, part, about)  # from the tensors themselves, without a copy

    @classmethod
    def read(cls, path: Path, run: str, code: str, device: str) -> "Checkpoint":
        """The checkpoint at `path`, if it is this run's, of this code and kind of device, and
        nothing was changed.

        Raises FileNotFoundError when there is none, ValueError, which says why, when it must not be
        used; other exceptions when the file is damaged.
        """
        with open_to_read(path), safe_open(path, "pt") as file:
            about = file.metadata()
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["run"] != run:
            raise ValueError(f"it is of the run {about['run']}")
        if about["code"] != code:
            raise ValueError("the code has changed since")
        if about.get("device") != device:
            raise ValueError(f"it is of the device {about.get('device')}, not {device}")
        if about["state"] != digest(state):
            raise ValueError("its numbers have changed")
        tables = {name: Extent(**each) for name, each in json.loads(about["tables"]).items()}
        for name, extent in tables.items():
            table = path.with_name(f"{name}.csv")
            if table.parent != path.parent or extent_of(table, extent.bytes) != extent:
                raise ValueError(f"{name}.csv is not what it was")
        seconds, cpu_seconds = float(about["seconds"]), float(about["cpu_seconds"])
        return cls(run, code, device, seconds, cpu_seconds, tables, state)


def digest(state: dict[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and numbers of CPU tensors."""
    whole = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].contiguous()
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        whole.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return whole.hexdigest()
