"""One attempt at a run: started or gone on with, claimed, checkpointed, completed or failed."""

import json
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import torch
import yaml
from filelock import Timeout
from threadpoolctl import threadpool_limits

from runner.core import progress
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.folders import require_writable
from runner.core.progress import Progress
from runner.core.rooms import module_of, rows_of
from runner.core.settings import Settings
from runner.core.studies import Context, Row
from runner.data.datasets import Dataset, load
from runner.runs import (
    allocator,
    files,
    locks,
    memory,
    provenance,
    replacing,
    signals,
    trackers,
)
from runner.runs.checkpoint import Checkpoint
from runner.runs.code import code_of
from runner.runs.devices import torch_device
from runner.runs.files import write_atomically
from runner.runs.run import RESULT, Run, read_provenance
from runner.runs.tables import Extent, TableWriter, facts_of, rows_in

log = logging.getLogger("runner")
log.setLevel(logging.INFO)  # run.log tells the whole story, whatever the caller's level


def execute(run: Run, settings: Settings) -> None:
    """Bring the run to completion: start it, go on with it, or leave it when it is complete.

    A complete run that is computed again is kept until the new attempt is complete.
    Raises InputError when the run does not fit into memory, the folder cannot be written or the
    tracker is not installed, RunFailed when the study raises, Busy when another process computes
    the run and `settings.wait` is false.
    """
    device = torch_device(settings.device)
    if not run.is_wanted(settings):
        return
    memory.require(run.config, device)
    trackers.require(settings.tracker)
    require_writable(settings.folder(), run.folder)
    with _claimed(run, settings.wait):
        if replacing.settle(run) and not run.is_stale():
            return
        if not run.is_wanted(settings):
            return
        folder = run.folder
        if run.is_complete():
            why = "force=true" if settings.force else "its code has changed"
            log.info("%s is computed again: %s", run, why)
            folder = replacing.begin(run)
        elif run.result_path.exists():
            log.info("%s is computed again: its files are damaged", run)
            _clear(run)
        with signals.held() as notice:
            _Execution(run, folder, settings, device, notice).carry_out()
        replacing.settle(run)


@contextmanager
def _claimed(run: Run, wait: bool) -> Iterator[None]:
    """Hold the run's folder for this process. A dead owner holds nothing."""
    try:
        try:
            lock = locks.acquire(run.folder, wait=False)
        except Timeout:
            if not wait:
                raise Busy(f"{run} is being computed by another process") from None
            log.info("%s is being computed by another process: waiting", run)
            lock = locks.acquire(run.folder, wait=True)
    except OSError as error:
        raise InputError(f"{run.folder} cannot be written ({error.strerror})") from error
    try:
        yield
    finally:
        lock.release()


def _clear(run: Run) -> None:
    """Make the run incomplete: `result.json` goes first, so that no step leaves a false one."""
    run.result_path.unlink(missing_ok=True)
    (run.folder / "checkpoint.safetensors").unlink(missing_ok=True)


class _Execution:
    """One attempt at a run, from its config file to its result or its error.

    folder: where it leaves them, the run's own or `run.again`.
    """

    def __init__(
        self,
        run: Run,
        folder: Path,
        settings: Settings,
        device: torch.device,
        notice: signals.Notice,
    ) -> None:
        self.run, self.settings, self.device, self.notice = run, settings, device, notice
        self.folder = folder
        self.checkpoint_path = self.folder / "checkpoint.safetensors"
        self.started = self.saved = time.monotonic()
        self.cpu_started = time.process_time()
        self.seconds_before = self.cpu_seconds_before = 0.0
        self.code = code_of(run.config.study)
        self.status = "running"
        self.tracking = trackers.Tracking(run, settings.tracker, settings.folder())

    def carry_out(self) -> None:
        """Run the study and leave its result, or its error and where it stopped."""
        exhausted = False
        allocator.keep_freed_memory()
        if self.settings.threads is not None:
            torch.set_num_threads(self.settings.threads)
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        self.provenance = {"code": self.code, "data": {}, **provenance.describe(self.device)}
        try:
            files.remove_parts(self.folder)
            written = files.open_to_append(self.folder / "run.log")
        except OSError as error:
            raise InputError(f"{self.folder} cannot be written ({error.strerror})") from error
        handler = logging.StreamHandler(written)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        handler.addFilter(lambda record: record.name != progress.OF_ALL)
        log.addHandler(handler)
        try:
            self.tracking.start(self.provenance)
            self.started = self.saved = time.monotonic()  # what was before is no work of the run
            self.cpu_started = time.process_time()
            # numpy's and scipy's products have threads of their own
            blas = threadpool_limits(self.settings.threads, user_api="blas")
            with memory.capped(self.device), blas:
                self._start()
                self._iterate()
        except (KeyboardInterrupt, SystemExit):
            self._mark("interrupted")
            raise
        except InputError:
            self._mark("failed")
            raise
        except Exception as error:
            if self.notice.is_ending:  # the error is what the signal ends the process with
                self._mark("interrupted")
                raise
            exhausted = memory.is_exhausted(error)
            if not exhausted:
                self._fail(error)
        finally:
            self.tracking.end("failed" if exhausted else self.status)
            log.removeHandler(handler)
            handler.close()
            written.close()
        if exhausted:  # only here, behind the handler, is free what the error held on to
            self._mark("failed")
            raise memory.exhausted(self.run.config, self.device)

    def _fail(self, error: Exception) -> NoReturn:
        """Leave the error's traceback in the folder. Raises RunFailed."""
        with suppress(OSError):  # a full disk may be what went wrong
            write_atomically(self.folder / "error.txt", traceback.format_exc().encode())
            self._mark("failed")
        raise RunFailed(
            f"{self.run} failed: {type(error).__name__}: {error}\n"
            f"  traceback: {self.folder / 'error.txt'}"
        ) from error

    def _start(self) -> None:
        config = self.run.config
        content = {"study": config.study, "version": config.version, **vars(config)}
        write_atomically(
            self.folder / "config.yaml", yaml.safe_dump(content, sort_keys=False).encode()
        )
        self.state, tables = self._restore()
        self.tables = TableWriter(self.folder, tables)
        for row in self._kept(tables) if self.settings.tracker else ():
            self.tracking.row(row)
        self._mark("running")
        begins = "goes on:" if self.state else "starts:"
        progress.log.info("%s %s on %s", begins, self.run, self.device)

    def _iterate(self) -> None:
        context = Context(self.device, self.state, Progress, self._checkpoint, self._load_data)
        try:
            for row in module_of(self.run.config.study).run(self.run.config, context):
                self.tables.write(row)
                self.tracking.row(row)
            written = self.tables.flush()
        finally:
            self.tables.close()
        self._mark("complete")
        result = {
            "status": "complete",
            "tables": {table: facts_of(self.folder / f"{table}.csv") for table in written},
        }
        write_atomically(self.folder / RESULT, _json(result))
        for leftover in (self.checkpoint_path, self.folder / "error.txt"):  # of use until here
            leftover.unlink(missing_ok=True)
        progress.log.info("complete: %s in %.1f s", self.run, self._seconds())

    def _load_data(self, name: str, seed: int, checksums: list[str] | None = None) -> Dataset:
        """The dataset; the provenance has the content of its files from then on."""
        data = load(name, self.settings.source, self.settings.data_folder, seed, checksums)
        self.provenance["data"] |= data.files
        self._mark("running")
        return data

    def _seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def _cpu_seconds(self) -> float:
        """Of all threads of this process: what other work on the machine does not lengthen."""
        return self.cpu_seconds_before + time.process_time() - self.cpu_started

    def _mark(self, status: str) -> None:
        """Write the provenance with the run's status; times are in seconds, memory in bytes."""
        self.status = status
        content = {
            "status": status,
            "seconds": round(self._seconds(), 3),
            "cpu_seconds": round(self._cpu_seconds(), 3),
            **provenance.peak_memory(self.device),
            **self.provenance,
        }
        write_atomically(self.folder / "provenance.json", _json(content))

    def _checkpoint(self, make_state: Callable[[], dict[str, torch.Tensor]]) -> None:
        is_due = time.monotonic() - self.saved >= self.settings.checkpoint_seconds
        if not (is_due or self.notice.is_given):
            return
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in make_state().items()}
        written = self.tables.flush()
        spent = self._seconds(), self._cpu_seconds()
        checkpoint = Checkpoint(
            self.run.folder.name, self.code, self.device.type, *spent, written, state
        )
        checkpoint.write(self.checkpoint_path)
        self.saved = time.monotonic()
        if self.notice.is_given:
            log.info("checkpoint: %s, for the process is to end", self.run)
            self.notice.pass_on()

    def _restore(self) -> tuple[dict[str, torch.Tensor] | None, dict[str, Extent]]:
        """State and tables of the checkpoint; nothing where there is none that can be used."""
        try:
            found = Checkpoint.read(
                self.checkpoint_path, self.run.folder.name, self.code, self.device.type
            )
        except FileNotFoundError:
            return None, {}
        except Exception as error:  # whatever a damaged file comes up with
            log.info("%s starts anew: its checkpoint cannot be used (%s)", self.run, error)
            return None, {}
        self.seconds_before, self.cpu_seconds_before = found.seconds, found.cpu_seconds
        self.provenance["first"] = self._first_provenance()
        return found.state, found.tables

    def _kept(self, tables: dict[str, Extent]) -> Iterator[Row]:
        """The rows that the checkpoint vouches for."""
        for table in tables:
            yield from rows_in(self.folder / f"{table}.csv", rows_of(self.run.config.study)[table])

    def _first_provenance(self) -> dict[str, Any]:
        """What began the run that now goes on: kept beside what ends it."""
        before = read_provenance(self.folder)
        return before.get("first") or {key: before.get(key) for key in self.provenance}


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
