"""Which parameters of a figure may have several values, so that no drawing merges runs unseen.

A drawing keeps runs apart by the parameters in which the runs of its own file differ, at any scale.
Runs that differ only in their seed are united (`results.united`). Any other parameter has one value
in a figure.
"""

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runner.core.catalogue import rows_of
from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.runs.run import UNNAMED

if TYPE_CHECKING:
    import runner.results.figure


@dataclasses.dataclass(frozen=True)
class Apart:
    """Runs that differ in one parameter alone: its values, and all other parameters of the runs."""

    values: list[Any]
    others: dict[str, Any]


def runs_apart(configs: Sequence[StudyConfig]) -> dict[str, list[Apart]]:
    """Return the sets of runs that differ in one parameter alone, by the parameter's name."""
    apart: dict[str, list[Apart]] = {}
    tables = [{k: v for k, v in vars(config).items() if k not in UNNAMED} for config in configs]
    for name in tables[0] if tables else ():
        groups: dict[str, dict[str, dict[str, Any]]] = {}
        for values in tables:
            others = json.dumps({**values, name: None}, sort_keys=True)
            groups.setdefault(others, {})[json.dumps(values[name])] = values
        sets = [[*group.values()] for group in groups.values() if len(group) > 1]
        if sets:
            apart[name] = [Apart([each[name] for each in some], some[0]) for some in sets]
    return apart


def check_several(
    figure: "runner.results.figure.Figure",
    typed: Collection[str],
    presets: Callable[[Collection[str]], Iterable[Sequence[StudyConfig]]],
) -> None:
    """Raise InputError if a figure has several values of a parameter that it cannot keep apart.

    typed: the keys that the user typed. presets: returns the parameters of the runs in the figure's
    file, for each scale that may have several values of one of the given parameters. It is called
    only if it is needed, and read only as far as it is needed.
    """
    configs = [run.config for run in figure.runs]
    several = {
        name: sets
        for name, sets in runs_apart(configs).items()
        if name in typed or "grids" in typed
    }
    if several.pop("seed", None):
        _check_seeds(figure)
    kinds = [name for name in _kinds(configs) if name not in typed]
    unknown = [(name, apart) for name, sets in several.items() for apart in sets]
    known: set[str] = set()
    for preset in presets({*several}) if unknown else ():
        drawn = runs_apart(preset)
        known |= {*drawn}
        unknown = [
            (name, apart)
            for name, apart in unknown
            if not any(_are_alike(apart, other, kinds, name) for other in drawn.get(name, []))
        ]
        if not unknown:
            break
    for name, apart in unknown:
        raise InputError(_one_value(figure, name, apart, name in known))
    for name, sets in several.items():
        for apart in sets:
            _check_lists(figure, name, apart)


def _check_seeds(figure: "runner.results.figure.Figure") -> None:
    """Raise InputError if the runs of several seeds are the same, or cannot be united."""
    if not figure.runs[0].config.random:
        raise InputError(f"{figure.figure} has no randomness: omit seed")
    if not _can_unite(figure.study):
        raise InputError(_one_value(figure, "seed"))


def _kinds(configs: Sequence[StudyConfig]) -> list[str]:
    """Return the parameters with names or truth values in which the runs of a figure differ.

    Panels often have one kind of runs each.
    """
    several = {
        name: {
            value for config in configs if isinstance(value := getattr(config, name), str | bool)
        }
        for name in vars(configs[0])
    }
    return [name for name, values in several.items() if len(values) > 1]


def _are_alike(one: Apart, other: Apart, kinds: Iterable[str], but: str) -> bool:
    """Return whether two sets of runs are of one kind, except for the parameter `but`."""
    return all(one.others[kind] == other.others[kind] for kind in kinds if kind != but)


def _check_lists(figure: "runner.results.figure.Figure", name: str, apart: Apart) -> None:
    """Raise InputError if two values of a parameter are lists with a common element."""
    lists = [value for value in apart.values if isinstance(value, list)]
    elements = [element for value in lists for element in value]
    if twice := [element for element in elements if elements.count(element) > 1]:
        raise InputError(
            f"{figure.figure} would count the same networks twice: two lists of {name} have"
            f" {twice[0]}"
        )


def _one_value(
    figure: "runner.results.figure.Figure",
    name: str,
    apart: Apart | None = None,
    elsewhere: bool = False,
) -> str:
    """Return the message that a parameter has one value in a figure.

    apart: the runs that differ in it. elsewhere: whether other runs of the figure may have several.
    """
    text = (
        f"{figure.figure} draws one value of {name}{' in some of its runs' if elsewhere else ''}: "
    )
    values = apart.values if apart else []
    if values and all(isinstance(value, list) for value in values):
        elements = dict.fromkeys(element for value in values for element in value)
        text += f"give one list, {name}=[{','.join(map(str, elements))}], or "
    return f"{text}add -m for one figure each"


def _can_unite(study: str) -> bool:
    """Return whether all tables of a study have replicates, or averages over them."""
    from runner.results.united import can_unite  # late: it imports pandas

    return all(map(can_unite, rows_of(study).values()))
