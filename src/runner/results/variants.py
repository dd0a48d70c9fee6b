"""A figure as one command makes it: the canonical one, or with overrides and by a name of its own.

What a figure draws is a set of runs. It is canonical when these are the runs of the plain command
`figure=<figure> scale=<scale>`; any other set has a name of its own, `<figure>-<hash8>`, so that
neither overwrites the other.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.core.rooms import FOLDERS, own_rooms, package_of
from runner.runs.run import Run


def variant_name(figure: str, runs: Iterable[str]) -> str:
    """`<figure>-<hash8>`: the hash covers the names of the runs, in any order."""
    digest = hashlib.sha256(json.dumps(sorted(runs)).encode()).hexdigest()
    return f"{figure}-{digest[:8]}"


def room_words(study: str) -> list[str]:
    """The words that make the study known where its room was given by `--config-dir`."""
    package, given = package_of(study).rpartition(".")[0], os.environ.get(FOLDERS, "")
    own = [room.folder for room in own_rooms() if room.package == package]
    return [
        word
        for folder in own
        if str(folder) in given.split(os.pathsep)
        for word in ("--config-dir", str(folder))
    ]


@dataclass(frozen=True)
class Variant:
    """A figure at a scale: which runs it draws, what it is called, and where its files are."""

    figure: str
    scale: str
    name: str
    """The figure's own where it is canonical."""
    overrides: tuple[str, ...]
    """What was typed to make it another than the canonical one, of which there are none."""
    runs: tuple[Run, ...]
    outputs: Path
    headline: str = ""
    """What the figure is, in its configuration."""
    style: str = "screen"
    """How it is drawn: for the screen, or for paper."""

    @property
    def is_canonical(self) -> bool:
        """Whether its runs are those of the plain command."""
        return self.name == self.figure

    @property
    def study(self) -> str:
        """The study of its runs."""
        return self.runs[0].config.study

    @property
    def command(self) -> str:
        """The command that makes it."""
        if self.is_canonical:
            return f"make {self.figure} SCALE={self.scale}"
        words = (f"figure={self.figure}", f"scale={self.scale}", *self.overrides)
        return shlex.join(["python", "-m", "runner", *words])

    def path(self, end: str) -> Path:
        """One of its files: `<outputs>/figures/<scale>/<name>.<end>`."""
        return self.outputs / "figures" / self.scale / f"{self.name}.{end}"
