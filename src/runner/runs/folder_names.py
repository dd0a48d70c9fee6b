"""Names of the folders of runs: `<parameters>-<hash>`.

The hash is of the study, its version and its parameters, so it identifies a run. The parameters are
for people, and programs do not read them. A folder is therefore found by its hash, whatever stands
before the hash.
"""

import os
import re
from pathlib import Path
from typing import Any

from runner.core.catalogue import sizes
from runner.core.studies import StudyConfig

NAME = re.compile(r"(?P<knobs>.*)-(?P<hash>[0-9a-f]{8}(-\d+)?)")
"""The name of a run's folder. The hash has a number at its end if a run with other parameters has
the name without it."""

BEFORE = ".before"
"""The ending of the folder with the old numbers of a run that is computed again."""

MARK = "replaced.txt"
"""A file in this folder. A folder `<name>.before` that the user has made lacks it, and stays."""

LONGEST_NAME = 120
"""The largest number of bytes of the parameters in a name. File systems allow 255 for a name."""

UNNAMED = ("checksums",)
"""Parameters that are part of the hash, but not of the readable name."""

UNUSUAL = re.compile(r"[^\w=+.,@-]")
"""Characters that a name does not have, since a shell or a program for copying gives them a
meaning."""


def readable(value: Any) -> str:
    """Return a parameter's value as text for a run's name; elements of a list are joined by `+`."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def shown(value: Any) -> str:
    """Return a parameter's value as text for people. `None` is `null`, as it is typed."""
    return "null" if value is None else readable(value)


def folder_name(config: StudyConfig, hash8: str) -> str:
    """Return the name of a new folder: `depth=32-2efde073`.

    First it has the main parameters of the study (`named`). The parameters follow that differ from
    the values of a scale. The name depends only on the config, so that two processes with the same
    run take the same folder. hash8: the first eight digits of the run's hash.
    """
    main = [name for name in config.named if name not in UNNAMED]
    others = [name for name in changed(config) if name not in (*main, *UNNAMED)]
    words = ",".join(f"{name}={shown(getattr(config, name))}" for name in (*main, *others))
    words = UNUSUAL.sub("_", words).encode()[:LONGEST_NAME].decode(errors="ignore")
    return f"{words or 'defaults'}-{hash8}"


def changed(config: StudyConfig) -> list[str]:
    """Return the names of the parameters that the defaults and the scale do not explain.

    A config does not know its scale. The scale that explains the most parameters is taken, and the
    scale `quick` if several explain as many.
    """
    different, by_scale = config.identity(), sizes(config.study)
    of_scales = [by_scale.pop("quick", {}), *by_scale.values(), {}]
    left = [
        [
            name
            for name in vars(config)
            if (getattr(config, name) != scale[name] if name in scale else name in different)
        ]
        for scale in of_scales
    ]
    return min(left, key=len)


def with_hash(folder: Path, hash8: str) -> list[Path]:
    """Return the folders of runs in a study's folder whose names end in a hash.

    A run that is computed again has only the folder `<name>.before` for a moment. The result has
    its own folder nevertheless.
    """
    try:
        names = {name.removesuffix(BEFORE) for name in os.listdir(folder) if hash8 in name}
    except OSError:  # nothing was computed there
        return []
    matches = filter(None, map(NAME.fullmatch, sorted(names)))
    return [folder / match[0] for match in matches if match["hash"].startswith(hash8)]


def before(path: Path) -> Path:
    """Return a path with the ending `.before`, as the folder of old numbers has it."""
    return path.with_name(path.name + BEFORE)


def old_of(folder: Path) -> Path | None:
    """Return the folder with a run's old numbers; None if the run is not computed again."""
    old = before(folder)
    return old if (old / MARK).is_file() and not old.is_symlink() else None
