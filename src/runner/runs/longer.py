"""Go on with a finished run: a longer run continues from the states of a shorter one.

With `keep_checkpoint=true` a run keeps two states of each phase. A phase is one training: of all
networks that choose learning rates, of all networks at these rates, or of one large network. It
begins where the epoch, or else the step, of the state falls.

A longer run computes the first epoch of a phase. If its rows, and all that training has changed,
are then as in the shorter run, it goes on from the end of that phase. What the phase did not
change, such as the scores of earlier phases, it keeps. If anything differs, as a learning rate that
was chosen anew, or a schedule that depends on the number of epochs, it computes the whole phase.

A study allows this by a file `longer.py`, which promises that its first epochs, and the times at
which they are measured, do not depend on how many follow. The file may be empty.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from runner.core.catalogue import part_of
from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.runs import run as runs
from runner.runs.files import write_atomically
from runner.runs.run import RESULT, STATES, Run
from runner.runs.tables import Extent, TableWriter, sha256_of

OWN = "phase"
"""The name of what a checkpoint stores of the present phase."""

TENSOR, NUMBERS = "tensor", "numbers"
"""What stands for a tensor among packed numbers, and the name of these numbers."""

SAME = ("code", "device_name", "threads", "versions", "instructions")
"""What must be equal in the provenance of both runs, so that all bytes are equal."""

REPLICATES = ("replicates", "selection_replicates")

INTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

State = dict[str, Tensor]
Sizes = dict[str, int]
"""Numbers of bytes of tables, by name."""


def by_of(run: Run) -> tuple[str, str]:
    """Return the parameter that makes a run longer, empty if there is none, and why it does not."""
    by = next((name for name in ("epochs", "steps") if hasattr(run.config, name)), "")
    if not by:
        return "", f"{run.config.study} has no epochs or steps to add"
    allowed = part_of(run.config.study, "longer") is not None
    why_not = f"its schedule (a cosine) or its times of measurement depend on the number of {by}"
    return by, "" if allowed else why_not


def packed(content: dict[str, Any]) -> Tensor:
    """Return numbers and tensors by name as one tensor of bytes."""
    tensors: dict[str, Tensor] = {}

    def without_tensors(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: without_tensors(inner) for name, inner in part.items()}
        if isinstance(part, Tensor):
            tensors[name := str(len(tensors))] = part.contiguous()
            return [TENSOR, name]
        return part

    numbers = json.dumps(without_tensors(content)).encode()
    tensors[NUMBERS] = torch.frombuffer(bytearray(numbers), dtype=torch.uint8)
    return torch.frombuffer(bytearray(save(tensors)), dtype=torch.uint8)


def unpacked(content: bytes) -> dict[str, Any]:
    """Return the numbers and tensors that `packed` has made bytes of."""
    tensors = load(content)

    def with_tensors(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: with_tensors(inner) for name, inner in part.items()}
        is_tensor = isinstance(part, list) and part[:1] == [TENSOR]
        return tensors[part[1]] if is_tensor else part

    return with_tensors(json.loads(tensors[NUMBERS].numpy().tobytes()))


@dataclass
class Phase:
    """A training within a run.

    - begun, reached, ended: the sizes of the tables at the first step, at the first step of the
      second epoch, and at the last step;
    - early, last: the state after the last two of these steps; empty before.
    """

    begun: Sizes
    reached: Sizes = field(default_factory=dict)
    ended: Sizes = field(default_factory=dict)
    early: State = field(default_factory=dict)
    last: State = field(default_factory=dict)

    def joined(self, early: State) -> State | None:
        """Return the state at the end of this phase for a run whose state in the second epoch is
        `early`; None if that run has trained in another way.
        """
        joined = State()
        if early.keys() != self.early.keys():
            return None
        for name, new in early.items():
            old, end = self.early[name], self.last[name]
            if (new.shape, new.dtype) != (end.shape, end.dtype):
                return None
            is_kept = _bits(old) == _bits(end)
            if not (is_kept | (_bits(old) == _bits(new))).all():
                return None
            values = torch.where(is_kept, _bits(new), _bits(end))
            joined[name] = values.view(end.dtype).view(end.shape)
        return joined


def _bits(tensor: Tensor) -> Tensor:
    """Return the numbers of a tensor as integers with the same bits, without its shape."""
    return tensor.contiguous().reshape(-1).view(INTS[tensor.element_size()])


class Jump(Exception):
    """Ends an attempt at a study, which then goes on from `state`.

    folder, phase: the folder of the shorter run, and the phase at whose end it is.
    """

    def __init__(self, state: State, folder: Path, phase: Phase) -> None:
        self.state, self.folder, self.phase = state, folder, phase

    def join_tables(self, tables: TableWriter) -> dict[str, Extent]:
        """Add to each table what the shorter run wrote in its phase; return the tables' extents."""
        stored = runs.read_result(self.folder / RESULT)["tables"]
        extents = tables.flush()
        for table, end in self.phase.ended.items():
            path = tables.folder / f"{table}.csv"
            content = path.read_bytes() if table in extents else b""
            content += _part(self.folder, table, self.phase.reached, end)
            path.write_bytes(content)
            rows, sha256 = content.count(b"\n") - 1, hashlib.sha256(content).hexdigest()
            extents[table] = Extent(len(content), rows, sha256, stored[table]["columns"])
        return extents


def _part(folder: Path, table: str, begin: Sizes, end: int | None = None) -> bytes:
    """Return a part of a table in a run's folder. begin: where it begins; end: None: at the end."""
    return (folder / f"{table}.csv").read_bytes()[begin.get(table, 0) : end]


class Phases:
    """The phases of a run, and where it goes on from those of a shorter run.

    folder: the run's folder. keeps: whether its states are stored. shorter: the folder of the
    shorter run; None: there is none.
    """

    def __init__(self, folder: Path, keeps: bool, shorter: Path | None) -> None:
        self.folder, self.keeps, self.shorter = folder, keeps, shorter
        self.looks = keeps or shorter is not None
        self.finished, self.first, self.at = 0, 0, (0, 0)
        self.now: Phase | None = None
        """The present phase. Its first epoch is `first`; `at` are the last epoch and step."""

    def see(self, state: State, tables: TableWriter) -> None:
        """Look at the state after a step. tables: those of the run so far.

        Raises Jump if the run goes on from the end of the shorter run's phase.
        """
        before, self.at = self.at, (int(state.get("epoch", 0)), int(state.get("step", 0)))
        sizes, is_compared = tables.sizes(), False
        if self.now is None or self.at <= before:
            self._finish()
            self.now, self.first = Phase(sizes), self.at[0]
        elif self.first < self.at[0] and not self.now.early:
            self.now.early, self.now.reached, is_compared = _copied(state), sizes, True
        if self.keeps:
            self.now.last, self.now.ended = _copied(state), sizes
        if is_compared and self.shorter:
            self._compare(self.now, self.shorter, tables)

    def _compare(self, now: Phase, shorter: Path, tables: TableWriter) -> None:
        """Raise Jump if the first epoch of a phase is as in the shorter run."""
        path = shorter / STATES.format(self.finished)
        old = Phase(**unpacked(path.read_bytes())) if path.is_file() else Phase({})
        tables.flush()
        is_equal = old.reached.keys() == now.reached.keys() and all(
            _part(self.folder, table, now.begun, end)
            == _part(shorter, table, old.begun, old.reached.get(table))
            for table, end in now.reached.items()
        )
        if is_equal and (joined := old.joined(now.early)):
            raise Jump(joined, shorter, old)

    def _finish(self) -> None:
        """Store the states of the present phase, which has ended."""
        if self.now is not None:
            if self.keeps:
                content = packed(vars(self.now)).numpy().tobytes()
                write_atomically(self.folder / STATES.format(self.finished), content)
            self.finished += 1

    def complete(self) -> list[str]:
        """Store the states of the last phase; return the SHA-256 of the file of each phase."""
        self._finish()
        paths = [self.folder / STATES.format(i) for i in range(self.finished * self.keeps)]
        for path in {*self.folder.glob(STATES.format("*"))} - {*paths}:
            path.unlink()
        return [sha256_of(path) for path in paths]

    def stored(self) -> State:
        """Return the present phase for a checkpoint, whose state is that of the last step."""
        if self.now is None or not self.looks:
            return {}
        now = vars(self.now) | {"last": {}, "ended": {}}
        return {OWN: packed({"place": [self.finished, self.first, *self.at], "now": now})}

    def restore(self, state: State, tables: Mapping[str, Extent]) -> None:
        """Take the present phase out of the state of a checkpoint, and continue in it.

        tables: the extents in the checkpoint. Raises ValueError if the states are to be stored and
        the checkpoint does not have them.
        """
        if OWN in state:
            own = unpacked(state.pop(OWN).numpy().tobytes())
            self.finished, self.first, *at = own["place"]
            self.now, self.at = Phase(**own["now"]), (at[0], at[1])
            self.now.last = _copied(state)
            self.now.ended = {name: extent.bytes for name, extent in tables.items()}
        elif self.keeps:
            raise ValueError("it has no states to keep")
        else:
            self.shorter, self.looks = None, False


def _copied(state: State) -> State:
    return {name: tensor.clone() for name, tensor in state.items()}


def shorter_than(run: Run, about: Mapping[str, Any], wants: set[float]) -> tuple[Path | None, str]:
    """Return the folder of the longest run from which a run can go on, and a line about it.

    The line is empty if no run differs only in the parameter that makes runs longer. If there are
    such runs, but none can be continued, it says why. about: the provenance of the run. wants: the
    times at which its weights are wanted.
    """
    by, why_not = by_of(run)
    length, found = getattr(run.config, by, 0), list[tuple[bool, bool, int, Path, str]]()
    for folder in run.folder.parent.iterdir() if by else ():
        with suppress(InputError):
            config = runs.read_config(folder) if (folder / RESULT).is_file() else run.config
            if replace(config, **{by: length}) == run.config != config:
                value = getattr(config, by)
                why = f"it is longer, {by}={value}" if value > length else why_not
                why = why or _why_not(folder, about, {t for t in wants if t <= value})
                why = why or _of_streams(config, run.config)
                found.append((not why, value < length, value, folder, why))
    if not found:
        return None, ""
    can, _, value, folder, why = max(found)
    said = f"it does not go on from {folder.name}: {why}"
    return (folder, f"it goes on from {folder.name} ({by}={value})") if can else (None, said)


def _why_not(folder: Path, about: Mapping[str, Any], wants: set[float]) -> str:
    """Return why a run cannot go on from the run in a folder; empty if it can."""
    result, there = runs.read_result(folder / RESULT), runs.read_provenance(folder)
    if not (phases := result.get("phases")):
        return "it was computed without keep_checkpoint=true"
    if other := [name for name in SAME if there.get(name) != about.get(name)]:
        return f"it was computed with another {other[0].replace('_name', '')}"
    if missing := wants - {*result.get("weights", {}).get("at", ())}:
        return f"it has no weights at {min(missing):.15g}"
    is_damaged = runs.damaged_states(folder, phases) or not runs.is_whole(folder)
    return "its files are damaged" if is_damaged else ""


def _of_streams(short: StudyConfig, long: StudyConfig) -> str:
    """Return why two runs do not draw the same numbers; empty if they do, as nearly always."""
    streams, drawn = short.streams(), range(1 + sum(vars(long).get(name, 0) for name in REPLICATES))
    pairs = [(replicate, purpose) for replicate in drawn for purpose in streams.purposes]
    differ = any(streams.seed_of(*pair) != long.streams().seed_of(*pair) for pair in pairs)
    return "a random stream has another seed" if differ else ""
