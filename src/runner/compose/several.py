"""Which parameters of a figure may have several values, so that no drawing merges runs unseen.

A drawing keeps runs apart by the parameters in which the runs of its own file differ, at any scale.
Runs that differ only in their seed are united (`results.united`). Any other parameter has one value
in a figure.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runner.core.catalogue import rows_of
from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.runs.run import UNNAMED

if TYPE_CHECKING:
    import runner.results.figure


def values_apart(configs: Sequence[StudyConfig]) -> dict[str, list[list[Any]]]:
    """Return the parameters in which alone some runs differ, with their values.

    For each parameter there is a list for each such set of runs.
    """
    apart: dict[str, list[list[Any]]] = {}
    tables = [{k: v for k, v in vars(config).items() if k not in UNNAMED} for config in configs]
    for name in tables[0] if tables else ():
        groups: dict[str, dict[str, Any]] = {}
        for values in tables:
            others = json.dumps({**values, name: None}, sort_keys=True)
            groups.setdefault(others, {})[json.dumps(values[name])] = values[name]
        if several := [[*group.values()] for group in groups.values() if len(group) > 1]:
            apart[name] = several
    return apart


def check_several(
    figure: "runner.results.figure.Figure",
    typed: Collection[str],
    presets: Callable[[], Iterable[Sequence[StudyConfig]]],
) -> None:
    """Raise InputError if a figure has several values of a parameter that it cannot keep apart.

    typed: the keys that the user typed. presets: returns the parameters of the runs in the figure's
    file, for each scale; it is called only if it is needed.
    """
    apart = values_apart([run.config for run in figure.runs])
    several = {name: groups for name, groups in apart.items() if name in typed or "grids" in typed}
    if "seed" in several:
        several.pop("seed")
        _check_seeds(figure)
    if not several:
        return
    known: set[str] = set()
    for configs in presets():
        known |= {*values_apart(configs)} | _listed(figure.study, configs)
    for name, groups in several.items():
        if name not in known:
            raise InputError(_one_value(figure, name))
        for values in groups:
            elements = [element for value in values if isinstance(value, list) for element in value]
            if twice := [e for e in elements if elements.count(e) > 1]:
                raise InputError(
                    f"{figure.figure} would count the runs of {name} twice: two lists have"
                    f" {twice[0]}"
                )


def _one_value(figure: "runner.results.figure.Figure", name: str) -> str:
    return f"{figure.figure} draws one value of {name}: add -m for one figure each"


def _check_seeds(figure: "runner.results.figure.Figure") -> None:
    """Raise InputError if a table has neither replicates nor averages over them."""
    from runner.results.united import can_unite  # late: it imports pandas

    if not all(map(can_unite, rows_of(figure.study).values())):
        raise InputError(_one_value(figure, "seed"))


def _listed(study: str, configs: Iterable[StudyConfig]) -> set[str]:
    """Return the parameters with a list of several values, each of which has rows of its own.

    `widths` is such a parameter if all tables have the key `width`.
    """
    several = {
        name
        for config in configs
        for name, value in vars(config).items()
        if isinstance(value, list) and len(value) > 1
    }
    keys = set.intersection(*(set(row_class.keys) for row_class in rows_of(study).values()))
    return {name for name in several if keys & {name, name.removesuffix("s")}}
