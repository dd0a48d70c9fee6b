"""A figure as one command makes it: the paper's own, or with changed parameters and another name.

What a figure draws is a set of runs. It is canonical when these are the runs of the plain command
`figure=<figure> scale=<scale>`; any other set has a name of its own, `<figure>-<hash8>`, so that
neither overwrites the other.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.core.catalogue import figure_study, given_folders, package_of, packages
from runner.runs.run import Run


def variant_name(figure: str, runs: Iterable[Run]) -> str:
    """Return `<figure>-<hash8>`: the hash covers the names of the runs, in any order."""
    names = sorted(run.folder.name for run in runs)
    return f"{figure}-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"


def folder_words(study: str) -> list[str]:
    """Return the words that make the study known where its folder was given by `--config-dir`."""
    package = package_of(study).rpartition(".")[0]
    own = [each.folder for each in packages() if each.name == package]
    given = [folder for folder in own if folder in given_folders()]
    return [word for folder in given for word in ("--config-dir", str(folder))]


@dataclass(frozen=True)
class PaperFigure:
    """A figure at a scale: which runs it draws, what it is called, and where its files are.

    name: the figure's own where it is canonical; overrides: what was typed to make it another;
    headline: what the figure is, in its configuration; style: of `results.style`; place: where in
    `outputs` its files are. Of the reference, no runs are known.
    """

    figure: str
    scale: str
    name: str
    overrides: tuple[str, ...]
    runs: tuple[Run, ...]
    outputs: Path
    headline: str = ""
    style: str = "screen"
    place: str = "figures"

    @property
    def is_canonical(self) -> bool:
        """Whether its runs are the runs of the command without overrides."""
        return self.name == self.figure

    @property
    def study(self) -> str:
        """The study of its runs."""
        return self.runs[0].config.study if self.runs else figure_study(self.figure)

    @property
    def command(self) -> str:
        """The command that makes it."""
        if self.is_canonical:
            return f"make {self.figure} SCALE={self.scale}"
        words = (f"figure={self.figure}", f"scale={self.scale}", *self.overrides)
        return shlex.join(["python", "-m", "runner", *words])

    def path(self, end: str) -> Path:
        """Return one of its files: `<outputs>/<place>/<scale>/<name>.<end>`."""
        return self.outputs / self.place / self.scale / f"{self.name}.{end}"
