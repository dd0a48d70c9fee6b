"""Rules before numbers: which rules of a figure stood before its runs were begun.

Their digests are written beside the figure when its first run is about to be computed. A claim that
is changed, or added, once numbers are there is none of them.
"""

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from runner.results.claims import claims_of
from runner.runs.files import write_atomically

if TYPE_CHECKING:
    import runner.results.figure

END = "rules.json"


def register(figure: "runner.results.figure.Figure") -> None:
    """Write down the digests of a figure's rules, before runs of it are computed.

    Where a run has been begun, those alone that were written down before that, and are the same.
    """
    rules = {claim.name: claim.digest for claim in claims_of(figure.figure, figure.study)}
    if any(run.folder.exists() for run in figure.runs):
        before = registered(figure)
        rules = {name: digest for name, digest in rules.items() if before.get(name) == digest}
    place = figure.path(END)
    place.parent.mkdir(parents=True, exist_ok=True)
    content = {"rules": rules, "runs": _names(figure)}
    write_atomically(place, json.dumps(content, indent=1).encode())


def registered(figure: "runner.results.figure.Figure") -> dict[str, str]:
    """Return the digests that were written down before these runs were computed, by claim."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(figure.path(END).read_text())
        if found["runs"] == _names(figure):
            return found["rules"]
    return {}


def _names(figure: "runner.results.figure.Figure") -> list[str]:
    return sorted(run.folder.name for run in figure.runs)
