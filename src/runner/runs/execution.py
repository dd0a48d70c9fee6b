"""Execute a run: take its lock, resume it, compute and checkpoint it, write its result.

To read this module, begin with `execute`.
"""

import json
import logging
import math
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from runner.core import input_files, progress
from runner.core.catalogue import module_of, rows_of
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.folders import require_writable
from runner.core.progress import Progress
from runner.core.settings import Settings
from runner.core.shell import command
from runner.core.studies import Context, Measured, TrainingConfig
from runner.core.user_functions import described, function_at
from runner.data.datasets import Dataset, load
from runner.networks import own_calls
from runner.runs import files, lock, longer, machine, provenance
from runner.runs.checkpoint import Checkpoint
from runner.runs.files import write_atomically
from runner.runs.folder_names import MARK, before, old_of
from runner.runs.gains import require_gain
from runner.runs.run import CHECKPOINT, RESULT, SUMS, WEIGHTS, Run, at_time, read_provenance
from runner.runs.tables import TableWriter, rows_in, sha256_of

if TYPE_CHECKING:
    from runner.runs.trackers import Tracking

KEPT = "kept weights/"
"""The prefix of the weights' names in a checkpoint, which also has the state of the study."""

ACTIVATIONS = re.compile(r"x|[HZ]\d*")
"""The names of tensors that are not weights: inputs, hidden activations and pre-activations."""

log = logging.getLogger("runner")
log.setLevel(logging.INFO)  # run.log has all lines, whatever the caller's level


def execute(run: Run, settings: Settings, turn: int = 0, n_jobs: int = 1) -> None:
    """Compute a run: start it, or resume it from its checkpoint. A complete run is left unchanged.

    If the settings ask to compute a complete run again, its folder is renamed to `<name>.before`.
    This folder is removed when the new numbers are complete. turn: the run's number in a sweep.
    n_jobs: how many runs share this machine. Raises

    - InputError if the folder cannot be written or renamed, or the device or the tracker's package
      is missing;
    - InputError if `init=gain` and the gain of a user's activation cannot be computed;
    - InputError if the memory is full, the run is stale and `stale=refuse`, or the study raises
      InputError;
    - RunFailed if the study raises another exception;
    - Busy if another process computes the run and `settings.wait` is false, or if another process
      takes the run over.
    """
    device, folder = machine.device(settings.device, turn, n_jobs), run.folder
    if not run.is_wanted(settings):
        return
    if settings.tracker:
        from runner.runs import trackers  # late: most runs have none

        trackers.require(settings.tracker)
    require_gain(run.config)
    require_writable(settings.folder(), folder)
    with lock.held(folder, settings.wait, str(run)) as require_lock:
        if old_of(folder) and run.is_complete():  # a process was killed just before it could end
            _remove_old(folder)
            settings = replace(settings, force=False)
        if not run.is_wanted(settings):
            return
        if run.is_complete():
            why = "force=true" if settings.force else "its code has changed"
            log.info("%s is computed again: %s; old numbers: %s", run, why, before(folder))
            _set_aside(folder)
        elif run.result_path.exists():
            log.info("%s is computed again: its files are damaged", run)
            run.result_path.unlink()  # first: damaged files must not count as a result
            (folder / CHECKPOINT).unlink(missing_ok=True)
        folder.mkdir(exist_ok=True)
        with _logged_to(folder):
            _Attempt(run, settings, device, require_lock).carry_out(n_jobs)
        require_lock()
        if old_of(folder):
            _remove_old(folder)


def _remove_old(folder: Path) -> None:
    """Remove the old numbers of a run, as `cleaning.remove_old` does."""
    from runner.runs.cleaning import remove_old  # late: most runs have no old numbers

    remove_old(folder)


def _set_aside(folder: Path) -> None:
    """Rename a complete run's folder to `<name>.before`.

    Raises InputError if this is not possible, for example if the user has a folder of this name.
    """
    old = before(folder)
    try:
        write_atomically(folder / MARK, f"{folder.name} is computed again\n".encode())
        folder.rename(old)
    except OSError as error:
        (folder / MARK).unlink(missing_ok=True)
        raise InputError(
            f"{folder} cannot be renamed to {old.name} ({error.strerror}).\n"
            f"If you have made {old.name}, give it another name."
        ) from error


@contextmanager
def _logged_to(folder: Path) -> Iterator[None]:
    """Write the log to the folder's `run.log`, too. Raises InputError if no file can be written."""
    try:
        files.remove_parts(folder)
        path = folder / "run.log"
        handler = _RunLog(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror})") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    handler.addFilter(lambda record: record.name != progress.SWEEP_LOG)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _RunLog(logging.FileHandler):
    """Writes `run.log`. If the disk is full, lines are lost: the run's tables fail anyway."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Print no traceback."""


@dataclass
class _Attempt:
    """One attempt at a run, from its config file to its result or its error.

    require_lock: a function that raises Busy if another process has taken the run over.
    """

    run: Run
    settings: Settings
    device: torch.device
    require_lock: Callable[[], None]

    def __post_init__(self) -> None:
        self.folder, self.status = self.run.folder, "running"
        self.about: dict[str, Any] = {"code": None, "data": {}}
        self.began, self.cpu_began = time.monotonic(), time.process_time()
        self.started = _now()
        self.weights: dict[str, Tensor] = {}
        self.times = self.settings.kept_times()
        self.tracking: Tracking | None = None
        if name := self.settings.tracker:
            from runner.runs import trackers  # late: most runs have none

            self.tracking = trackers.Tracking(self.run, name, self.settings.folder())

    def carry_out(self, n_jobs: int) -> None:
        """Compute the run and write its result. If it fails, write the error."""
        run = self.run
        try:
            with machine.shared(self.device, self.settings.threads, n_jobs):
                self.study = module_of(run.config.study)
                name = run.config.measure if isinstance(run.config, TrainingConfig) else None
                self.function = function_at(name) if name else None
                self.about["data"] |= input_files.checked(run.config)
                self.about["code"] = run.code()  # of the imported modules
                self.about |= provenance.describe(self.device) | {
                    "typed": [*run.typed],
                    "note": self.settings.note,
                }
                if self.tracking:
                    self.tracking.start(self.about)
                with machine.usual_torch(), own_calls.run_of(run.config.seed):
                    self._begin()
                    self._compute()
        except Busy:
            raise  # the files in the folder are another process's
        except KeyboardInterrupt:
            self._log("interrupted")
            with suppress(OSError):  # a full disk
                self._mark("interrupted")
            raise
        except InputError as error:
            self._fail(error, str(error))
            raise
        except (Exception, SystemExit) as error:
            if machine.is_exhausted(error):
                traceback.clear_frames(error.__traceback__)  # they refer to the tensors in memory
                machine.free_memory()
                text = f"ran out of memory on {self.device}: choose smaller sizes"
                self._fail(error, text)
                hint = f"({command(f'study={run.config.study}', '--help')} lists the parameters)"
                raise InputError(f"{run} {text}\n  {hint}") from None
            text = described(error)
            raise RunFailed(f"{run} failed: {text}\n  {self._fail(error, text)}") from error
        finally:
            if self.tracking:
                self.tracking.end(self.status)

    def _begin(self) -> None:
        """Continue from the last usable checkpoint, or start from the beginning."""
        config, device = self.run.config, self.device
        write_atomically(self.folder / "config.yaml", self.run.config_text())
        (self.folder / "error.txt").unlink(missing_ok=True)  # of an earlier attempt
        self.start = Checkpoint(self.run.folder.name, self.about["code"], device.type)
        keeps, (_, why_not) = self.settings.keep_checkpoint, longer.by_of(self.run)
        if keeps and why_not:
            progress.log.info("keep_checkpoint=true has no effect: %s", why_not)
        shorter, note = longer.shorter_than(self.run, self.about, {*self.times})
        shorter = None if self.tracking else shorter  # it gets all rows of a run in their order
        self.phases = longer.Phases(self.folder, keeps and not why_not, shorter)
        try:
            self._go_on(self.start.read(self.folder / CHECKPOINT))
            before = read_provenance(self.folder)  # the origin of the first attempt stays, too
            first = before.get("first") or {key: before.get(key) for key in self.about}
            self.about["first"] = first
            self.started = before.get("started", self.started)
        except FileNotFoundError:
            pass
        except Exception as error:  # a damaged file may raise anything
            log.info("%s starts again: its checkpoint cannot be used (%s)", self.run, error)
        self.saved = time.monotonic()  # earlier seconds were not spent on the run
        self.began = self.saved - self.start.seconds
        self.cpu_began = time.process_time() - self.start.cpu_seconds
        self.tables = TableWriter(self.folder, self.start.tables)
        if self.tracking:
            for table in self.start.tables:
                for row in rows_in(self.folder / f"{table}.csv", rows_of(config.study)[table]):
                    self.tracking.row(row)
        self._mark("running")
        begins = "goes on:" if self.start.tables or self.start.state else "starts:"
        progress.log.info("%s %s on %s", begins, self.run, device)
        if note and not (self.tracking or self.start.state):
            progress.log.info(note)
        if shorter:
            self.about["continues"] = shorter.name
            at = tuple(map(at_time, self.times))
            older = load_file(shorter / WEIGHTS) if at else {}
            self.weights = {n: t for n, t in older.items() if n.startswith(at)} | self.weights

    def _compute(self) -> None:
        """Write the rows that the study yields, and the result."""
        try:
            state = self.start.state
            while (jump := self._write_rows(state)) is not None:
                extents = jump.join_tables(self.tables)
                self.tables.close()
                self.tables, state = TableWriter(self.folder, extents), jump.state
            written = self.tables.flush()
        finally:
            self.tables.close()
        if not written:
            raise ValueError("the study has yielded no row")
        if self.run.code() != self.start.code:
            raise InputError(f"{self.run}: its code has changed meanwhile: run it again")
        self._mark("complete")
        tables = {table: asdict(extent) for table, extent in written.items()}
        result = {"status": "complete", "tables": tables} | self._weights()
        result |= {"phases": states} if (states := self.phases.complete()) else {}
        write_atomically(self.folder / SUMS, _json(self._sums()))
        write_atomically(self.folder / RESULT, _json(result))
        (self.folder / CHECKPOINT).unlink(missing_ok=True)  # not needed any more
        progress.log.info("complete: %s in %.1f s", self.run, time.monotonic() - self.began)

    def _write_rows(self, state: dict[str, Tensor] | None) -> longer.Jump | None:
        """Write the rows that the study yields from a state on; None: from the beginning.

        Returns None at the end of the study, or where it goes on from the end of another run.
        """
        lent = (Progress, self._checkpoint, self._load_data, self._take)
        try:
            for row in self.study.run(self.run.config, Context(self.device, state, *lent)):
                self.require_lock()
                self.tables.write(row)
                if self.tracking:
                    self.tracking.row(row)
        except longer.Jump as jump:
            return jump
        return None

    def _sums(self) -> dict[str, Any]:
        """Return lengths and checksums of the files that tell of the computation, by name.

        A line will be added to the log.
        """
        sums = {}
        for path in (self.folder / "provenance.json", self.folder / "run.log"):
            size = path.stat().st_size
            sums[path.name] = {"bytes": size, "sha256": sha256_of(path, size)}
        return sums

    def _go_on(self, start: Checkpoint) -> None:
        """Resume from a checkpoint. Raises ValueError if it lacks weights that must be stored."""
        state = start.state or {}
        of_times = {*state[KEPT].flatten().tolist()} if KEPT in state else None
        if self.settings.keep_weights and (of_times is None or not {*self.times} <= of_times):
            raise ValueError("it has no weights to keep")
        weights = {name: state.pop(name) for name in list(state) if name.startswith(KEPT)}
        self.phases.restore(state, start.tables)
        if self.settings.keep_weights:
            self.weights = {n.removeprefix(KEPT): t for n, t in weights.items() if n != KEPT}
        self.start = start

    def _take(
        self, network: str, replicate: int, time: float, make: Callable[[], dict[str, Tensor]]
    ) -> Iterator[Measured]:
        """Store a network's weights and yield what the user's function measures, if wanted."""
        if not (self.function or self.settings.keep_weights):
            return
        with torch.no_grad():
            tensors = {name: tensor.detach().clone() for name, tensor in make().items()}
        for name, tensor in tensors.items() if self.settings.keep_weights else ():
            if not ACTIVATIONS.fullmatch(name):
                copy = tensor.to("cpu", copy=True).contiguous()  # the function may change tensors
                stored = f"{network}/replicate={replicate}/{name}"
                self.weights[stored] = copy
                if time in self.times:
                    self.weights[at_time(time) + stored] = copy.clone()
        if self.function:
            measure = f"{self.function.__module__}:{self.function.__name__}"
            with own_calls.call_of("measure", measure, network, replicate, float(time)):
                result = self.function(tensors)
            for name, value in _numbers(measure, self.function, result).items():
                yield Measured(network, replicate, float(time), name, value)

    def _weights(self) -> dict[str, Any]:
        """Write the stored weights; return their entry in the result."""
        path = self.folder / WEIGHTS
        path.unlink(missing_ok=True)
        if not self.weights:
            if self.settings.keep_weights:
                progress.log.info(
                    "%s stores no weights: keep_weights=true has no effect", self.run.config.study
                )
            return {}
        with files.replaced(path) as part:
            save_file(self.weights, part)
        never = [t for t in self.times if not any(n.startswith(at_time(t)) for n in self.weights)]
        if never:
            listed = ", ".join(f"{time:.15g}" for time in never)
            progress.log.info("keep_weights: no network was measured at %s", listed)
        about = {"bytes": path.stat().st_size, "sha256": sha256_of(path), "at": self.times}
        return {"weights": about}

    def _load_data(self, name: str, seed: int, checksums: list[str] | None = None) -> Dataset:
        """Return the dataset, and add the checksums of its files to the provenance."""
        folder = self.settings.data_folder
        if name == self.run.config.own_images():
            from runner.data import own_images  # late: most runs need none

            data = own_images.load(name, folder, checksums)
            self.about |= {"classes": data.classes, "image_pixels": data.pixels_in_words()}
        else:
            data = load(name, self.settings.source, folder, seed, checksums)
        self.about["data"] |= data.files
        self._mark("running")
        return data

    def _checkpoint(self, make_state: Callable[[], dict[str, Tensor]]) -> None:
        """Write a checkpoint if the last one is older than `checkpoint_seconds`."""
        is_due = time.monotonic() - self.saved >= self.settings.checkpoint_seconds
        if not (is_due or self.phases.looks):
            return
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in make_state().items()}
        if self.phases.looks:
            self.phases.see(state, self.tables)
        if not is_due:
            return
        state |= self.phases.stored()
        if self.settings.keep_weights:
            state |= {KEPT + name: tensor for name, tensor in self.weights.items()}
            state[KEPT] = torch.tensor([math.inf, *self.times], dtype=torch.float64)
        changes: dict[str, Any] = {"tables": self.tables.flush(), "state": state, **self._spent()}
        self.require_lock()
        replace(self.start, **changes).write(self.folder / CHECKPOINT)
        self.saved = time.monotonic()

    def _spent(self) -> dict[str, float]:
        """Return the seconds of computing so far, by the clock and by the processor.

        The processor's seconds do not depend on other work on the machine.
        """
        now, cpu = time.monotonic(), time.process_time()
        return {"seconds": now - self.began, "cpu_seconds": cpu - self.cpu_began}

    def _fail(self, error: BaseException, message: str) -> str:
        """Write the traceback of an error to `error.txt`, and a message as the last line.

        Returns a line for the user: where the traceback is, or why it could not be written.
        """
        self.require_lock()
        path, message = self.folder / "error.txt", " ".join(message.split())
        self._log(f"failed: {message}")
        text = "".join(traceback.format_exception(error))
        text += "" if text.endswith(f"\n{message}\n") else f"\n{message}\n"
        hint, errors = f"traceback: {path}", [error]
        try:
            write_atomically(path, text.encode(errors="backslashreplace"))
        except OSError as problem:
            hint, errors = f"{path} cannot be written ({problem.strerror})", [error, problem]
            with suppress(OSError):
                path.touch()  # an empty file needs no space; it shows that the run has failed
        with suppress(OSError):
            self._mark("failed")
        if any(map(files.is_disk_full, errors)):
            outputs = self.settings.folder()
            return f"the disk of {outputs} is full: free space, and give the command again"
        return hint

    def _log(self, end: str) -> None:
        """Write the end of the attempt to `run.log` alone. The command prints it by other means."""
        with progress.single_runs_silent():
            progress.log.info("%s", end)

    def _mark(self, status: str) -> None:
        """Write the provenance with the run's status, the seconds of computing and the memory."""
        self.require_lock()
        self.status = status
        spent = {name: round(seconds, 3) for name, seconds in self._spent().items()}
        used = provenance.peak_memory(self.device)
        times = {"started": self.started, "ended": None if status == "running" else _now()}
        content = {"status": status, **times, **spent, **used, **self.about}
        write_atomically(self.folder / "provenance.json", _json(content))


def _numbers(what: str, function: Callable[..., Any], result: Any) -> dict[str, float]:
    """Return the numbers that the user's function has measured, by name.

    what: the value of the parameter `measure`. Raises InputError if the result is not a number or a
    dictionary of numbers.
    """
    name = getattr(function, "__name__", what.partition(":")[2])
    numbers = {}
    for key, value in (result if isinstance(result, dict) else {name: result}).items():
        try:
            numbers[str(key)] = float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            found = f"shape {tuple(value.shape)}" if hasattr(value, "shape") else f"{value!r:.60}"
            raise InputError(
                f"measure={what} returned {found} as {key}: a number, or a dictionary of numbers,"
                " is needed"
            ) from error
    return numbers


def _now() -> str:
    """Return date and time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
