"""The checkpoint of an unfinished run. It is valid only for this run, this code and these rows."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from runner.runs.files import replaced
from runner.runs.tables import Extent, sha256_of


@dataclass(frozen=True)
class Checkpoint:
    """The state of an unfinished run, from which the run can continue.

    Without tables and state, it is the state at the start of the run.

    - run: the run's name;
    - code: the fingerprint of the code;
    - device: the kind of device, `cpu` or `cuda`;
    - seconds, cpu_seconds: computing time so far, by the clock and by the processor;
    - tables: the part of each table that was written before the checkpoint;
    - state: the study's tensors by name, None at the start.
    """

    run: str
    code: str
    device: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    tables: dict[str, Extent] = field(default_factory=dict)
    state: dict[str, Tensor] | None = None

    def write(self, path: Path) -> None:
        """Write the checkpoint to the file `path`, which is replaced in one step.

        Raises AssertionError for the start of a run, which has no state.
        """
        assert self.state is not None, "the start is not written"
        about = {**vars(self), "state": digest(self.state)}
        about["tables"] = {name: asdict(extent) for name, extent in self.tables.items()}
        with replaced(path) as part:  # from the tensors themselves, without a copy
            save_file(self.state, part, {"about": json.dumps(about)})

    def read(self, path: Path) -> "Checkpoint":
        """Return the checkpoint in the file `path`, if it belongs to this object's run.

        Raises FileNotFoundError if there is no file. Raises ValueError, with the reason, if run,
        code or kind of device differ from this object's. Raises it also if the tensors or the
        tables have changed since. Raises other exceptions if the file is damaged.
        """
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["about"])
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name in ("run", "code", "device"):
            if about[name] != getattr(self, name):
                raise ValueError(f"its {name} is {about[name]}, not {getattr(self, name)}")
        if about["state"] != digest(state):
            raise ValueError("its numbers have changed")
        tables = {name: Extent(**extent) for name, extent in about["tables"].items()}
        for name, extent in tables.items():
            table = path.with_name(f"{name}.csv")
            if table.parent != path.parent or not table.exists():
                raise ValueError(f"{name}.csv is gone")
            if sha256_of(table, extent.bytes) != extent.sha256:
                raise ValueError(f"{name}.csv has changed")
        spent = float(about["seconds"]), float(about["cpu_seconds"])
        return Checkpoint(self.run, self.code, self.device, *spent, tables, state)


def digest(state: dict[str, Tensor]) -> str:
    """Return a SHA-256 of tensors, which covers names, types, shapes and numbers.

    state: tensors on the CPU, by name.
    """
    whole = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].contiguous()
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        whole.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()
