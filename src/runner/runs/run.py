"""A run: one study with one set of parameters, stored in one folder.

The folder `<outputs>/runs/<study>/<parameters>-<hash>/` has `config.yaml`, the tables,
`provenance.json` and `run.log`. It is found by its hash (`runs.folder_names`). An unfinished run
has `checkpoint.safetensors`, a failed run `error.txt`. The file `result.json` is written last and
in one step. A run is complete if it has this file. While a complete run is computed again, its old
numbers are in `<folder>.before`.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from runner.core.catalogue import config_of, module_of, rows_of, studies
from runner.core.choices import REGISTERED, kind_of
from runner.core.errors import OWN_NAME, InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, TrainingConfig, column_types
from runner.core.user_functions import place_of
from runner.runs import files
from runner.runs.files import write_atomically
from runner.runs.folder_names import (
    BEFORE,
    MARK,
    NAME,
    UNNAMED,
    folder_name,
    old_of,
    readable,
    with_hash,
)
from runner.runs.provenance import code_of
from runner.runs.tables import read_table, sha256_of

if TYPE_CHECKING:
    import torch

RESULT, CHECKPOINT = "result.json", "checkpoint.safetensors"

SUMS = "sums.json"
"""Lengths and checksums of `provenance.json` and of the beginning of `run.log`."""

WEIGHTS = "weights.safetensors"
"""The trained weights, with `keep_weights=true`: `batch/width=64/replicate=0/W1`, ... The names of
weights at a time of the training begin with the result of `at_time`."""

STATES = "states-{}.pt"
"""The name of a file with the states of one phase of training: see `runs.longer`."""

AT = re.compile(r"(?:at=(?P<time>[^/]*)/)?(?P<rest>.*)")
"""Pattern of a weight's name: the time of the training if it is not the last, and the rest."""


def at_time(time: float) -> str:
    """Return how the names of weights at a time of the training begin: `at=10.0/`."""
    return f"at={float(time)!r}/"


WRITTEN = {RESULT, CHECKPOINT, WEIGHTS, "config.yaml", "provenance.json", "run.log", "error.txt"}
OVERVIEW = "overview.json"
WRITTEN |= {"overview.png", "overview.txt", OVERVIEW, MARK, SUMS}
"""The files that a run writes in addition to its tables."""

LONGEST_KEY = 120


class Run:
    """A study with values for all its parameters, and the folder of its results.

    config: the parameters. outputs: the folder of outputs. typed: the arguments `key=value` of the
    command; in a sweep, with the values of this run.
    """

    def __init__(self, config: StudyConfig, outputs: Path, typed: Sequence[str] = ()) -> None:
        self.config = config
        self.outputs = outputs
        self._typed = tuple(typed)

    @cached_property
    def folder(self) -> Path:
        """Return the folder of the run, `<outputs>/runs/<study>/<parameters>-<hash>`.

        It is the folder with the run's hash, whatever the text before the hash. Of several such
        folders, a complete one is taken. If there is none, the run is new, and `folder_name` gives
        the name. If a run with other parameters has this folder, the name gets a number: `-2`,
        `-3`, ...
        """
        hash8, study = hash_of(self.config), self.outputs / "runs" / self.config.study
        new = study / folder_name(self.config, hash8)
        found = [path for path in with_hash(study, hash8) if not self._is_another(path)]
        if found:
            return min(found, key=lambda path: (not (path / RESULT).is_file(), path != new))
        numbered = (new.with_name(f"{new.name}-{number}") for number in count(2))
        return next(path for path in chain([new], numbered) if not self._is_another(path))

    def _is_another(self, folder: Path) -> bool:
        """Return whether a folder is of a run with other parameters but the same hash."""
        for path in filter(None, (folder, old_of(folder))):
            with suppress(InputError):  # nothing was computed there, or the file is damaged
                return identity_of(read_config(path)) != self.identity
        return False

    @property
    def key(self) -> str:
        """Return the name of the run in tables, `<parameters>-<hash>`.

        It does not depend on the name of the folder, so that stored tables keep their meaning.
        """
        return run_name(self.config)

    @property
    def identity(self) -> str:
        """Return study, version and parameters as one text. They alone determine the numbers."""
        return identity_of(self.config)

    @property
    def typed(self) -> tuple[str, ...]:
        """Return the arguments that were typed for the run.

        They are from the present command or, if it is unknown, from the command that computed the
        run.
        """
        return self._typed or tuple(self.provenance().get("typed") or ())

    @property
    def name(self) -> str:
        """Return the study and the parameters that differ from their defaults, as text."""
        return f"{self.config.study} {knobs(self.config) or '(defaults)'}"

    def __str__(self) -> str:
        """Return the study with the typed arguments. If they are unknown, return the run's name."""
        return f"{self.config.study} {' '.join(self.typed)}" if self.typed else self.name

    @property
    def result_path(self) -> Path:
        """Return the path of `result.json`, which exists only if the run has ended successfully."""
        return self.folder / RESULT

    @property
    def result(self) -> dict[str, Any]:
        """Return the content of `result.json`. Raises InputError if it cannot be read."""
        return read_result(self.result_path)

    def is_complete(self) -> bool:
        """Return whether the run has ended and all its tables have the recorded checksums."""
        return is_whole(self.folder)

    def mend_config(self) -> bool:
        """Write `config.yaml` again unless it has this run's parameters; return whether it did so.

        Nothing is written on a disk that is read only.
        """
        with suppress(InputError):
            if read_config(self.folder) == self.config:
                return False
        try:
            write_atomically(self.folder / "config.yaml", self.config_text())
        except OSError:
            return False
        return True

    def provenance(self) -> dict[str, Any]:
        """Return the content of `provenance.json`; an empty dictionary if it cannot be read."""
        return read_provenance(self.folder)

    def status(self) -> str:
        """Return the status that the last computation of the run recorded, else "absent"."""
        return str(self.provenance().get("status", "absent"))

    def is_stale(self) -> bool:
        """Return whether the run is complete, but perhaps computed by other code than today's."""
        return self.is_complete() and whose_code(self.provenance(), self.config) != "today's"

    def code(self) -> str:
        """Return the fingerprint of the present code of the run's study.

        Raises InputError as `provenance.code_of` does.
        """
        return code_of(self.config.study, functions_of(self.config))

    def is_wanted(self, settings: Settings) -> bool:
        """Return whether the run must be computed.

        It must if it is not complete, if old numbers must still be removed, or if the settings ask
        to compute it again (`force`, `stale`). Raises InputError if the run is stale and the
        settings have `stale=refuse`.
        """
        if settings.force or not self.is_complete() or old_of(self.folder):
            return True
        if settings.stale == "keep" or not self.is_stale():
            return False
        if settings.stale == "refuse":
            raise InputError(
                f"{self} was computed by {OF_CODE[whose_code(self.provenance(), self.config)]}.\n"
                "stale=recompute computes it again, stale=keep takes it as it is."
            )
        return True

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return all tables of the complete run, by name.

        Raises InputError if the run is not complete or a table is damaged.
        """
        return {
            name: read_table(self.folder / f"{name}.csv", expected)
            for name, expected in self.result["tables"].items()
        }

    def lacks_weights(self, at: Iterable[float] = ()) -> bool:
        """Return whether weights are missing or damaged although the study stores weights.

        The result is false if the study stores no weights. at: times of the training, for which
        the run must have looked, too. Raises InputError if the run is not complete.
        """
        stored = self.result.get("weights")
        if stored is None:
            return isinstance(self.config, TrainingConfig)
        return not {*at} <= {*stored.get("at", ())} or not holds(self.folder / WEIGHTS, stored)

    def weights(self, at: float | None = None) -> "dict[str, dict[str, torch.Tensor]]":
        """Return the trained weights: for each network's name, a dictionary of tensors by name.

        An example of a network's name is `batch/width=64/replicate=0`. at: a time of the training
        that `keep_weights=[...]` listed; by default the weights are the last ones. Raises
        InputError if no weights are stored, or none at this time, or they are damaged.
        """
        from safetensors import safe_open  # late: it imports torch

        if self.lacks_weights():
            raise InputError(
                f"{self} has no stored weights, or they are damaged.\n"
                "keep_weights=true force=true computes it again and stores them."
            )
        if "weights" not in self.result:
            raise InputError(f"{self}: this study stores no weights")
        networks: dict[str, dict[str, torch.Tensor]] = {}
        with safe_open(self.folder / WEIGHTS, "pt") as file:
            names = [AT.fullmatch(name) for name in file.keys()]  # noqa: SIM118
            for name in filter(None, names):
                if name["time"] == (None if at is None else repr(float(at))):
                    network, _, weight = name["rest"].rpartition("/")
                    networks.setdefault(network, {})[weight] = file.get_tensor(name[0])
        if not networks:
            times = sorted({float(name["time"]) for name in filter(None, names) if name["time"]})
            listed = "".join(f", {time:.15g}" for time in times)
            raise InputError(
                f"{self} has no weights at {at}, only the last{listed}."
                f"\nkeep_weights=[{at}] force=true computes it again, if it is measured there."
            )
        return networks

    def modules(self, at: float | None = None) -> "dict[str, torch.nn.Module]":
        """Return the trained networks as torch modules, by the networks' names.

        at: as in `weights`. The modules take samples as rows, and are in evaluation mode. Raises
        InputError as `weights` does, and if the study does not define modules.
        """
        make = getattr(module_of(self.config.study), "torch_module", None)
        if make is None:
            raise InputError(f"{self.config.study} has no module for its networks: see weights()")
        return {name: make(self.config, name, w) for name, w in self.weights(at).items()}

    def config_text(self) -> bytes:
        """Return the content of the run's `config.yaml`: study, version and all parameters."""
        config = self.config
        content = {"study": config.study, "version": config.version, **vars(config)}
        return yaml.safe_dump(content, sort_keys=False).encode()


class UnknownName(InputError):
    """Error if a run is of a study, or has a method, that the program knows only with its folder.

    The run is not damaged: `--config-dir FOLDER` makes the name known.
    """


def read_config(folder: Path) -> StudyConfig:
    """Return the parameters in a run's `config.yaml`.

    A parameter that the file lacks, because it was added to the study later, has its default. One
    that no longer exists is ignored in a run of other code, if it had its default, so that the
    folder's hash is that of the others. Raises InputError if the file is damaged, has a parameter
    that is not ignored, or is of another version of the study. Raises UnknownName if it has an
    unknown name of the user.
    """
    path = folder / "config.yaml"
    values = read_values(path)
    try:
        study, version = values.pop("study"), values.pop("version")
    except KeyError as error:
        raise InputError(f"{path} cannot be read (KeyError)") from error
    if not isinstance(study, str) or study not in studies():
        raise UnknownName(
            f"{path}: the study {study!r} is unknown; a study of your own needs --config-dir FOLDER"
        )
    config_class = config_of(study)
    if version != config_class.version:
        raise InputError(
            f"{path}: version {version} of {study}; the program has version {config_class.version},"
            " in which the same parameters give other numbers"
        )
    known = {field.name for field in dataclasses.fields(config_class)}
    gone = sorted(str(name) for name in set(values) - known)
    unknown = InputError(f"{path}: {study} has no parameter {', '.join(gone)} any more")
    try:
        config = config_class(**{name: values[name] for name in values if name in known})
        run_name(config)
    except InputError as error:
        if gone:
            raise unknown from error
        if " is unknown: " not in str(error):
            raise InputError(f"{path}: {error}") from error
        hint = "" if OWN_NAME in str(error) else f"; {OWN_NAME}"
        raise UnknownName(f"{path}: {error}{hint}") from error
    except Exception as error:  # the checks of a study may raise anything
        raise InputError(f"{path}: a value is of the wrong type ({error})") from error
    if gone and not _is_of_other_code(folder, config):
        raise unknown
    return config


def _is_of_other_code(folder: Path, config: StudyConfig) -> bool:
    """Return whether a folder is named for a run, which other code than today's computed."""
    named = folder.with_name(folder.name.removesuffix(BEFORE))
    return is_named_for(named, config) and whose_code(read_provenance(folder), config) == "other"


def read_values(path: Path) -> dict[Any, Any]:
    """Return the content of a `config.yaml`, a mapping, without checking the values.

    Raises InputError if the file does not exist, is not valid YAML, or is not a mapping.
    """
    try:
        values = yaml.safe_load(files.read(path))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} cannot be read (no mapping)")
    return values


def functions_of(config: StudyConfig) -> tuple[str, ...]:
    """Return the functions outside the study's package that compute its numbers: `module:function`.

    They are the user's functions among the parameters' values, given directly or by a registered
    name. The function that reads a user's images is one of them, too.
    """
    places = [*config.own_functions()]
    for item in dataclasses.fields(config):
        value, kind = getattr(config, item.name), kind_of(item.metadata["choices"])
        own = REGISTERED.get(kind, {})
        names = value if isinstance(value, list) else [value]
        places += [place_of(own[name]) for name in names if name in own]
    if config.own_images():
        places.append("runner.data.own_images:load")
    return tuple(places)


OF_CODE = {"other": "other code", "unknown": "code that is not known"}
"""How messages describe the code that computed a run, by the result of `whose_code`."""


def whose_code(provenance: dict[str, Any], config: StudyConfig) -> str:
    """Return which code computed a run: "today's", "other" or "unknown".

    provenance: the content of the run's `provenance.json`. config: its parameters. The code is
    unknown if the provenance has no fingerprint, or if a module of the user cannot be read.
    """
    try:
        today = code_of(config.study, functions_of(config))
    except (InputError, OSError):
        return "unknown"
    code = provenance.get("code")
    return "unknown" if not isinstance(code, str) else "today's" if code == today else "other"


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's `provenance.json`, or `{}` if it cannot be read."""
    try:
        content = json.loads(files.read(folder / "provenance.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_result(path: Path) -> dict[str, Any]:
    """Return the content of a `result.json`. Raises InputError if it cannot be read."""
    try:
        return json.loads(files.read(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({error}).\nRun it again with force=true."
        ) from error


def is_whole(folder: Path) -> bool:
    """Return whether a folder has a result, and all its tables have the recorded checksums."""
    try:
        tables = read_result(folder / RESULT)["tables"].items()
        return all(holds(folder / f"{name}.csv", table) for name, table in tables)
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        return False


def holds(path: Path, table: dict[str, Any]) -> bool:
    """Return whether a file has the expected size and checksum.

    table: the entry of `result.json` with the keys `bytes` and `sha256`.
    """
    try:
        stat = path.stat()
        if stat.st_size != table["bytes"]:
            return False
        return _sha256(path, stat.st_size, stat.st_mtime_ns) == table["sha256"]
    except OSError:
        return False


def damaged_states(folder: Path, digests: Sequence[str]) -> list[Path]:
    """Return the files of phases in a run's folder that are absent or do not have these SHA-256."""
    paths = [folder / STATES.format(index) for index in range(len(digests))]
    pairs = zip(paths, digests, strict=True)
    return [path for path, digest in pairs if not path.is_file() or sha256_of(path) != digest]


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, computed again if its size or time of change differs."""
    return sha256_of(path)


def knobs(config: StudyConfig) -> str:
    """Return the parameters that differ from their defaults, as text: `depth=32,seed=1`."""
    return ",".join(f"{name}={text}" for name, text in shown_parameters(config).items())


def shown_parameters(config: StudyConfig, all: bool = False) -> dict[str, str]:
    """Return parameters as texts, by name: those that differ from their defaults, or all."""
    values = vars(config) if all else config.identity()
    return {name: readable(value) for name, value in values.items() if name not in UNNAMED}


def identity_of(config: StudyConfig) -> str:
    """Return study, version and parameters as one text. They alone determine the numbers.

    Parameters at their defaults are not part of the text. A new parameter therefore does not rename
    old runs.
    """
    content: dict[str, Any] = {"study": config.study, "parameters": config.identity()}
    if config.version != 1:
        content["version"] = config.version
    return json.dumps(content, sort_keys=True)


def hash_of(config: StudyConfig) -> str:
    """Return the first eight digits of a hash of `identity_of(config)`."""
    return hashlib.sha256(identity_of(config).encode()).hexdigest()[:8]


def run_name(config: StudyConfig) -> str:
    """Return the name of a run in tables, `<parameters>-<hash>`: see `Run.key`.

    It has the parameters that differ from their defaults, and the run's hash.
    """
    words = knobs(config).replace("/", "_")[:LONGEST_KEY] or "defaults"
    return f"{words}-{hash_of(config)}"


def is_named_for(folder: Path, config: StudyConfig) -> bool:
    """Return whether a folder's name, and the name of the folder around it, fit the parameters."""
    match = NAME.fullmatch(folder.name)
    names = (config.study, hash_of(config))
    return match is not None and names == (folder.parent.name, match["hash"].partition("-")[0])


def stale_note(runs: Iterable[Run]) -> str | None:
    """Return a note on complete runs that were computed by other or unknown code.

    The result is None if there are no runs of this kind.
    """
    runs = list(runs)
    codes = {run: whose_code(run.provenance(), run.config) for run in runs if run.is_complete()}
    notes = []
    for kind, code in OF_CODE.items():
        stale = [run for run in codes if codes[run] == kind]
        text = f"computed by {code} and kept: stale=recompute computes again"
        notes.append(_note(stale, runs, text))
    return "\n".join(filter(None, notes)) or None


def absent_in_stale(runs: Iterable[Run]) -> set[str]:
    """Return the names of tables and columns of today's studies that tables of stale runs lack."""
    absent: set[str] = set()
    for run in filter(Run.is_stale, runs):
        tables = run.tables()
        for name, row_class in rows_of(run.config.study).items():
            columns = {*column_types(row_class)}
            absent |= columns - {*tables[name].columns} if name in tables else {name}
    return absent


def kept_notes(runs: Iterable[Run], settings: Settings) -> list[str]:
    """Return notes, a line each, on complete runs that do not fully meet the settings.

    These runs are not computed again. They were computed by other code, with another number of
    threads, or without storing the weights that the settings ask for. The number of threads changes
    how sums are rounded. It is not part of a run's identity.
    """
    runs = list(runs)
    times = settings.kept_times()
    bare = [run for run in runs if settings.keep_weights and run.lacks_weights(times)]
    threads = settings.threads
    if runs and threads is None:
        import torch  # late: as a rule the number is given

        threads = torch.get_num_threads()
    used = {run: run.provenance().get("threads") or threads for run in runs}
    others = [run for run in runs if used[run] != threads]
    numbers = " or ".join(sorted({str(used[run]) for run in others}))
    notes = [
        stale_note(runs),
        _note(bare, runs, "computed without keeping weights, or lost them: force=true keeps them"),
        _note(
            others,
            runs,
            f"computed with threads={numbers}, not {threads}, and kept: last digits may differ,"
            " force=true computes again",
        ),
    ]
    return [note for note in notes if note]


def _note(some: list[Run], runs: list[Run], text: str) -> str | None:
    """Return a sentence about some of the runs; None if there are none."""
    who = f"{len(some)} of {len(runs)} runs were" if len(runs) > 1 else f"{runs and runs[0]} was"
    return f"{who} {text}" if some else None


OF_IMAGES = ("classes", "image_pixels")
"""What the provenance says of a user's images."""


def load(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of several complete runs by name, each joined over the runs.

    Each table gets the column `run`, the key of the run. It also gets a column for each parameter
    that is a number or a text, unless it has a column of this name. A run that is given twice, or
    has two folders, is taken once. For a user's images it gets columns with the number of classes,
    and with the number and the range of the pixels. Raises InputError if a run is missing or
    damaged.
    """
    runs = list({(run.folder.parent, run.identity): run for run in runs}.values())
    missing = [run for run in runs if not run.result_path.exists()]
    if missing:
        names = "\n".join(f"  {run}" for run in missing[:5])
        more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(f"{len(missing)} of {len(runs)} runs are missing:\n{names}{more}")
    parts: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        scalars = {k: v for k, v in vars(run.config).items() if isinstance(v, int | float | str)}
        about = run.provenance()
        for name in OF_IMAGES:
            if about.get(name):
                scalars.setdefault(name, about[name])
        for name, table in run.tables().items():
            columns = {key: value for key, value in scalars.items() if key not in table.columns}
            parts.setdefault(name, []).append(table.assign(run=run.key, **columns))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}
