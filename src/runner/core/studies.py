"""What a study is: typed parameters, rows, and what a run lends to it.

A study is a folder `runner/papers/<room>/<folder>/`: a frozen dataclass of parameters in its
`config.py`, and in its `study.py` the row classes (the columns of its tables) and

    def run(config, context) -> Iterator[Row]
    def memory(config) -> int: bytes of its tensors at the peak, by formula (optional)

Its figures, claims and benchmarks are the modules of these names beside them, as far as there are
such. This module imports no torch, so that the command line can check a configuration at once.
"""

import importlib.util
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from runner.core.errors import InputError, nearest

if TYPE_CHECKING:
    import torch

    from runner.core.progress import Progress

PAPERS = Path(__file__).resolve().parents[1] / "papers"
"""Where the rooms are. Studies are found by their place: nothing here imports one by name."""

MOST = 1_000_000
"""The most replicates, layers and other things that a study counts one by one."""

LARGEST = 2**63 - 1
"""The largest whole number that a tensor or a column of a table holds."""


def parameter(
    help: str,
    default: Any,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A field of a study's parameters with its help text and its range.

    `minimum` and `maximum` are inclusive, `above` is exclusive; for a list they hold for each
    element, and the list must not be empty nor hold anything twice. None passes where the type
    admits it, nan never, and no whole number beyond 64 bits.
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "choices": choices}
    metadata = {"help": help, **limits}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def default_of(item: Field) -> Any:
    """The default value of a dataclass field."""
    return item.default if item.default is not MISSING else item.default_factory()


@dataclass(frozen=True)
class StudyConfig:
    """Base of every study's parameters: everything that changes its numbers, and nothing else.

    Raises InputError when a value is outside its range.
    """

    study: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised when the same parameters come to mean other numbers: old runs then no longer count."""

    seed: int = parameter("the root of all random streams", 0, minimum=0)

    def __post_init__(self) -> None:
        check_fields(self)

    def identity(self) -> dict[str, Any]:
        """The parameters that differ from their defaults: what names and hashes a run."""
        values = {item.name: (getattr(self, item.name), default_of(item)) for item in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}


def check_fields(config: Any) -> None:
    """Raise InputError unless each `parameter` of the dataclass is within its range."""
    for item in fields(config):
        value = getattr(config, item.name)
        values = value if isinstance(value, list) else [value]
        if not values:
            raise InputError(f"{item.name}=[] is empty ({item.metadata['help']})")
        for index, each in enumerate(values):
            _check(item, each)
            if each in values[:index]:
                raise InputError(f"{item.name}={_listed(values)} holds {each} twice")


def _listed(values: list) -> str:
    return f"[{','.join(map(str, values))}]"


def _check(item: Field, value: Any) -> None:
    """Raise InputError unless `value` lies in the range that the field states, and in 64 bits."""
    if value is None:
        return
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError(f"{item.name} has {value.bit_length()} bits: it must be at most {LARGEST}")
    limits = item.metadata
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            hint = nearest(str(value), limits["choices"])
            raise InputError(f"{item.name}={value} is not known: {hint}")
        return
    rules = []
    if limits["minimum"] is not None:
        rules.append((f"at least {limits['minimum']}", lambda v: v >= limits["minimum"]))
    if limits["above"] is not None:
        rules.append((f"above {limits['above']}", lambda v: v > limits["above"]))
    if limits["maximum"] is not None:
        rules.append((f"at most {limits['maximum']}", lambda v: v <= limits["maximum"]))
    # A comparison with nan is false, so nan breaks every rule.
    if not all(holds(value) for _, holds in rules):
        expected = " and ".join(text for text, _ in rules)
        raise InputError(f"{item.name}={value} must be {expected} ({limits['help']})")


class Row:
    """Base of the row dataclasses: a class `Metrics` is the table `metrics.csv`.

    The fields are the columns, in order; each is an int, a float, a str or a bool.
    """

    keys: ClassVar[tuple[str, ...]]
    """The columns that say what was measured, unique within a run; the others are measurements."""

    @classmethod
    def table(cls) -> str:
        """The name of the table, without `.csv`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


@dataclass
class Context:
    """What a run lends to its study."""

    device: "torch.device"
    """Where the study computes."""
    restored: "dict[str, torch.Tensor] | None"
    """The state that the study last gave to `checkpoint`, when it goes on; None when it starts."""
    progress: "Callable[..., Progress]"
    """`with context.progress(total, 'what') as bar: bar.update(1, loss=...)`."""
    checkpoint: "Callable[[Callable[[], dict[str, torch.Tensor]]], None]"
    """`context.checkpoint(make_state)`: saves `make_state()` when enough time has passed since the
    last save. Rows yielded before are kept, rows yielded after are computed again on resume."""
    load_data: Callable[..., Any]
    """`context.load_data(name, seed, checksums)`: the `data.datasets.Dataset` of that name; seed:
    of random pixels; checksums: of the content of its files, where it has files."""


@cache
def configs() -> dict[str, type[StudyConfig]]:
    """Every study's parameter class by the study's name.

    Raises InputError when a study's `config.py` has no such class, or two have one name.
    """
    found: dict[str, type[StudyConfig]] = {}
    for path in sorted(PAPERS.glob("*/*/config.py")):
        room, folder = path.parts[-3:-1]
        module = importlib.import_module(f"runner.papers.{room}.{folder}.config")
        classes = [value for value in vars(module).values() if _is_study(value)]
        if len(classes) != 1 or classes[0].study in found:
            raise InputError(
                f"{path}: one StudyConfig with a name (study: ClassVar[str]) of its own is needed"
            )
        found[classes[0].study] = classes[0]
    return found


def _is_study(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, StudyConfig) and "study" in vars(value)


def package_of(study: str) -> str:
    """The package of a study's folder. Raises InputError when there is no such study."""
    if study not in configs():
        raise InputError(f"study={study} is not known: {nearest(study, configs())}")
    return configs()[study].__module__.rpartition(".")[0]


def room_of(study: str) -> str:
    """The room of a study: the folder of its paper."""
    return package_of(study).split(".")[-2]


def part_of(study: str, part: str) -> ModuleType | None:
    """The module `<part>.py` of a study's folder (figures, claims, bench), None without one."""
    name = f"{package_of(study)}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def module_of(study: str) -> ModuleType:
    """The module that holds the study's rows and its `run`.

    Raises InputError when there is none, or it lacks one of them.
    """
    place = f"study={study}: {package_of(study).replace('.', '/')}/study.py"
    module = part_of(study, "study")
    if module is None:
        raise InputError(f"{place} is missing")
    if not callable(getattr(module, "run", None)):
        raise InputError(f"{place} has no run(config, context)")
    if not _row_classes(module):
        raise InputError(f"{place} has no row class: a frozen dataclass derived from Row")
    return module


def rows_of(study: str) -> dict[str, type[Row]]:
    """The row classes of a study by the names of their tables."""
    return {row_class.table(): row_class for row_class in _row_classes(module_of(study))}


def _row_classes(module: ModuleType) -> list[type[Row]]:
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Row) and value is not Row
    ]
