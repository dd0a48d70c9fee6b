"""What a run is: one study at one configuration, kept in one folder.

The folder `<outputs>/runs/<study>/<readable knobs>-<hash8>/` holds `config.yaml`, the tables,
`provenance.json`, `run.log`, while unfinished `checkpoint.safetensors`, when failed `error.txt`,
and `result.json`, written last and atomically: it alone marks the run complete.
"""

import hashlib
import json
import logging
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml
from filelock import FileLock, Timeout

from runner import capacity, provenance
from runner.errors import Busy, InputError, RunFailed
from runner.settings import Settings, torch_device
from runner.studies import Context, StudyConfig, module_of
from runner.tables import TableWriter, fingerprint, read_table, write_atomically

if TYPE_CHECKING:
    import torch

log = logging.getLogger("runner")
log.setLevel(logging.INFO)  # run.log tells the whole story, whatever the caller's level

LONGEST_NAME = 120


class Run:
    """One study at one configuration: its identity, its folder, its state."""

    def __init__(self, config: StudyConfig, outputs: Path) -> None:
        self.config = config
        self.folder = outputs / "runs" / config.study / run_name(config)

    def __str__(self) -> str:
        return f"{self.config.study} {knobs(self.config) or '(defaults)'}"

    @property
    def result_path(self) -> Path:
        """The file whose presence marks the run complete."""
        return self.folder / "result.json"

    @cached_property
    def result(self) -> dict[str, Any]:
        """The content of `result.json`. Raises InputError when it cannot be read."""
        try:
            return json.loads(self.result_path.read_text())
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.result_path} cannot be read ({error}).\nRun it again with force=true."
            ) from error

    def is_complete(self) -> bool:
        """Whether the run has ended and its tables are there at their full size."""
        if not self.result_path.exists():
            return False
        try:
            tables = self.result["tables"]
            sizes = {name: (self.folder / f"{name}.csv").stat().st_size for name in tables}
        except (InputError, KeyError, TypeError, OSError):
            return False
        return all(sizes[name] == table["bytes"] for name, table in tables.items())

    def status(self) -> str:
        """What `provenance.json` says: running, interrupted, failed, complete; or absent."""
        try:
            return str(json.loads((self.folder / "provenance.json").read_text())["status"])
        except (OSError, ValueError, KeyError, TypeError):
            return "absent"

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the complete run. Raises InputError when one is damaged."""
        return {
            name: read_table(self.folder / f"{name}.csv", expected)
            for name, expected in self.result["tables"].items()
        }


def knobs(config: StudyConfig) -> str:
    """What a person calls the run: the parameters that differ from their defaults."""
    return ",".join(f"{name}={_readable(value)}" for name, value in config.identity().items())


def _readable(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def run_name(config: StudyConfig) -> str:
    """`<readable knobs>-<hash8>`: the hash covers what changes the numbers and nothing else.

    A field that equals its default is left out, so that a new field does not move old runs.
    """
    content = {"study": config.study, "parameters": config.identity()}
    if config.version != 1:
        content["version"] = config.version
    text = json.dumps(content, sort_keys=True)
    hash8 = hashlib.sha256(text.encode()).hexdigest()[:8]
    readable = knobs(config).replace("/", "_")[:LONGEST_NAME] or "defaults"
    return f"{readable}-{hash8}"


def load(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """The tables of several complete runs, those of one name joined into one.

    Each gets the column `run` and, as far as it has no such column, the parameters of the run.
    Raises InputError when a run is missing or damaged.
    """
    runs = list(runs)
    missing = [run for run in runs if not run.is_complete()]
    if missing:
        names = "\n".join(f"  {run}" for run in missing[:5])
        more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(f"{len(missing)} of {len(runs)} runs are missing:\n{names}{more}")
    collected: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        for name, table in run.tables().items():
            collected.setdefault(name, []).append(_with_parameters(table, run))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in collected.items()}


def _with_parameters(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    scalars = {
        name: value
        for name, value in vars(run.config).items()
        if name not in table.columns and isinstance(value, int | float | str)
    }
    return table.assign(run=run.folder.name, **scalars)


def execute(run: Run, settings: Settings) -> None:
    """Bring the run to completion: start it, go on with it, or leave it when it is complete.

    Raises InputError when the run will not fit into memory or the folder cannot be written,
    RunFailed when the study raises, Busy when another process computes the run and `settings.wait`
    is false.
    """
    device = torch_device(settings.device)
    if settings.force or not run.is_complete():
        capacity.require(run.config, device)
    with _claimed(run, settings.wait):
        vars(run).pop("result", None)  # another process may have written it since
        if run.is_complete() and not settings.force:
            return
        if run.result_path.exists():
            why = "force=true" if run.is_complete() else "its files are damaged"
            log.info("%s is computed again: %s", run, why)
            vars(run).pop("result", None)
            _clear(run)
        _Execution(run, settings, device).carry_out()


@contextmanager
def _claimed(run: Run, wait: bool):
    """Hold the run's folder for this process. A dead owner holds nothing."""
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(run.folder / ".lock")
        try:
            lock.acquire(timeout=0.1)
        except Timeout:
            if not wait:
                raise Busy(f"{run} is being computed by another process") from None
            log.info("%s is being computed by another process: waiting", run)
            lock.acquire()
    except OSError as error:
        raise InputError(
            f"{run.folder} cannot be written ({error.strerror}).\n"
            "Choose another folder with outputs=..."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _clear(run: Run) -> None:
    """Make the run incomplete: `result.json` goes first, so that no step leaves a false one."""
    run.result_path.unlink(missing_ok=True)
    (run.folder / "checkpoint.safetensors").unlink(missing_ok=True)


class _Execution:
    """One attempt at a run, from its config file to its result or its error."""

    def __init__(self, run: Run, settings: Settings, device: "torch.device") -> None:
        self.run, self.settings, self.device = run, settings, device
        self.folder = run.folder
        self.checkpoint_path = self.folder / "checkpoint.safetensors"
        self.started = self.saved = time.monotonic()
        self.seconds_before = 0.0

    def carry_out(self) -> None:
        """Run the study and leave its result, or its error and where it stopped."""
        import torch

        capacity.keep_freed_memory()
        if self.settings.threads is not None:
            torch.set_num_threads(self.settings.threads)
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        self.provenance = provenance.describe(self.device)
        try:
            handler = logging.FileHandler(self.folder / "run.log")
        except OSError as error:
            raise InputError(f"{self.folder} cannot be written ({error.strerror})") from error
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        log.addHandler(handler)
        try:
            self._start()
            self._iterate()
        except KeyboardInterrupt:
            self._mark("interrupted")
            raise
        except InputError:
            self._mark("failed")
            raise
        except Exception as error:
            with suppress(OSError):  # a full disk may be what went wrong
                (self.folder / "error.txt").write_text(traceback.format_exc())
                self._mark("failed")
            raise RunFailed(
                f"{self.run} failed: {type(error).__name__}: {error}\n"
                f"  traceback: {self.folder / 'error.txt'}"
            ) from error
        finally:
            log.removeHandler(handler)
            handler.close()

    def _start(self) -> None:
        config = self.run.config
        content = {"study": config.study, "version": config.version, **vars(config)}
        write_atomically(
            self.folder / "config.yaml", yaml.safe_dump(content, sort_keys=False).encode()
        )
        self.state, offsets, self.seconds_before = self._restore()
        self.tables = TableWriter(self.folder, offsets)
        self._mark("running")
        log.info("%s %s on %s", "goes on:" if self.state else "starts:", self.run, self.device)

    def _iterate(self) -> None:
        context = Context(self.device, self.state, _progress, self._checkpoint, self.settings)
        try:
            for row in module_of(self.run.config.study).run(self.run.config, context):
                self.tables.write(row)
            sizes = self.tables.flush()
        finally:
            self.tables.close()
        for leftover in (self.checkpoint_path, self.folder / "error.txt"):
            leftover.unlink(missing_ok=True)
        self._mark("complete")
        result = {
            "status": "complete",
            "tables": {table: fingerprint(self.folder / f"{table}.csv") for table in sizes},
        }
        write_atomically(self.run.result_path, _json(result))
        log.info("complete: %s in %.1f s", self.run, self._seconds())

    def _seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def _mark(self, status: str) -> None:
        """Write the provenance with the run's status; times are in seconds, memory in bytes."""
        content = {
            "status": status,
            "seconds": round(self._seconds(), 3),
            **provenance.peak_memory(self.device),
            **self.provenance,
        }
        write_atomically(self.folder / "provenance.json", _json(content))

    def _checkpoint(self, make_state: "Callable[[], dict[str, torch.Tensor]]") -> None:
        if time.monotonic() - self.saved < self.settings.checkpoint_seconds:
            return
        from safetensors.torch import save

        state = {
            name: tensor.detach().to("cpu", copy=True).contiguous()
            for name, tensor in make_state().items()
        }
        about = {"offsets": json.dumps(self.tables.flush()), "seconds": str(self._seconds())}
        write_atomically(self.checkpoint_path, save(state, about))
        self.saved = time.monotonic()

    def _restore(self) -> "tuple[dict[str, torch.Tensor] | None, dict[str, int], float]":
        """State, table sizes and seconds of the checkpoint; nothing where there is no sound one."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.checkpoint_path, "pt") as file:
                about = file.metadata()
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            offsets = json.loads(about["offsets"])
            for table, size in offsets.items():
                if (self.folder / f"{table}.csv").stat().st_size < size:
                    raise OSError(f"{table}.csv is shorter than the checkpoint says")
            return state, offsets, float(about["seconds"])
        except FileNotFoundError:
            return None, {}, 0.0
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            log.info("%s starts anew: its checkpoint cannot be used (%s)", self.run, error)
            return None, {}, 0.0


def _progress(total: int, what: str, done: int = 0, unit: str = "steps"):
    from runner.progress import Progress

    return Progress(total, what, done, unit)


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


if __name__ == "__main__":
    import sys

    from runner.inventory import main

    sys.exit(main(sys.argv[1:]))
