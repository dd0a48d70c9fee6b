"""What a study is: typed parameters, rows, and what a run lends to it.

A study is a folder (see `core.catalogue`). It offers

    config.py    one frozen dataclass of parameters: type, default, range and help of each
    study.py     the row classes, which are the columns of its tables, and run(config, context)
    figures.py   FIGURES = [Drawing(...), ...], overview(tables), the preview of one run, and
                 HEADLINE = ["test_mse", ...], the numbers of which a sweep draws a picture
    claims.py    CLAIMS = {figure: [Claim(...), ...], ...}

of which the last two are optional, and so are overview and HEADLINE. This module imports no torch,
so that the command line can check a configuration at once.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from runner.core.errors import InputError, nearest
from runner.core.streams import Streams, streams

if TYPE_CHECKING:
    import torch

    from runner.core.progress import Progress

OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""How a function of the user's is named: `module:function`."""

MOST = 1_000_000
"""The most replicates, layers and other things that a study counts one by one."""

LARGEST = 2**63 - 1
"""The largest whole number that a tensor or a column of a table holds."""

LARGEST_FACTOR = 1e6
"""The largest factor of a term of a loss, or of the numbers that a study starts from: float32 holds
its square, which Adam takes, times all that it may multiply. Beyond that, Adam takes no step."""

LARGEST_STEP = 1e38
"""The largest learning rate: float32 holds it. What diverges is a result, and shows in nan."""


def parameter(
    help: str,
    default: Any,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    own: bool = False,
) -> Any:
    """Return a field of a study's parameters with its help text and its range.

    `minimum` and `maximum` are inclusive, `above` is exclusive; for a list they hold for each
    element, and the list must not be empty nor hold anything twice. None passes where the type
    admits it, nan never, and no whole number beyond 64 bits. own: a function of the user's passes
    as well, `module:function`; its code is part of the run's.
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "choices": choices}
    metadata = {"help": help, "own": own, **limits}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def default_of(item: Field) -> Any:
    """Return the default value of a dataclass field."""
    return item.default if item.default_factory is MISSING else item.default_factory()


@dataclass(frozen=True)
class StudyConfig:
    """Base of every study's parameters: everything that changes its numbers, and nothing else.

    Raises InputError when a value is outside its range.
    """

    study: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised when the same parameters come to mean other numbers: old runs then no longer count."""

    seed: int = parameter("seed of all random numbers", 0, minimum=0)

    def __post_init__(self) -> None:
        check_fields(self)

    def identity(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults: what names and hashes a run."""
        values = {item.name: (getattr(self, item.name), default_of(item)) for item in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the study's random streams, in a fixed order.

        `core.streams` says why the order matters. It may depend on the parameters.
        """
        return ()

    def streams(self) -> Streams:
        """Return all random streams of the study: what draws in every epoch asks for them once."""
        return streams(self.seed, self.purposes())

    def stream(self, replicate: int, purpose: str) -> "torch.Generator":
        """Return the random stream of one replicate and one purpose."""
        return self.streams().generator(replicate, purpose)

    def refuse(self, names: Collection[str], where: str) -> None:
        """Raise InputError for the first of these parameters that is not at its default: it would
        change nothing `where` it is."""
        for name, value in self.identity().items():
            if name in names:
                raise InputError(f"{name}={value} changes nothing with {where}: leave it out")

    def own_functions(self) -> tuple[str, ...]:
        """Return the user's functions, `module:function`, that parameters name."""
        values = [getattr(self, item.name) for item in fields(self) if item.metadata["own"]]
        return tuple(value for value in values if value and OWN.fullmatch(value))


@dataclass(frozen=True)
class TrainingConfig(StudyConfig):
    """Base of the parameters of studies that train networks: those keep weights, and measure."""

    measure: str | None = parameter(
        "your own function that measures networks, module:function; its numbers go to measured.csv",
        None,
        own=True,
    )


def check_fields(config: Any) -> None:
    """Raise InputError unless each `parameter` of the dataclass is within its range."""
    for item in fields(config):
        value = getattr(config, item.name)
        values = value if isinstance(value, list) else [value]
        if not values:
            raise InputError(
                f"{item.name}=[] is empty: give at least one value ({item.metadata['help']})"
            )
        for index, each in enumerate(values):
            if isinstance(value, list) and isinstance(each, list | tuple | dict):
                raise InputError(f"{item.name}={value} holds {each}: one list of values is needed")
            _check(item, each)
            if each in values[:index]:
                raise InputError(
                    f"{item.name}={_listed(values)} holds {each} twice: give each value once"
                )


def _listed(values: list) -> str:
    return f"[{','.join(map(str, values))}]"


def _check(item: Field, value: Any) -> None:
    """Raise InputError unless `value` lies in the range that the field states, and in 64 bits."""
    if value is None:
        return
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError(f"{item.name} has {value.bit_length()} bits: it must be at most {LARGEST}")
    limits = item.metadata
    if limits["own"] and OWN.fullmatch(value):
        return
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            hint = nearest(str(value), limits["choices"])
            raise InputError(f"{item.name}={value} is unknown: {hint}")
        return
    if limits["own"]:
        raise InputError(f"{item.name}={value} names no function: write module:function")
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
    """Base of the row dataclasses: the fields are the columns of a table, in order.

    Each is an int, a float, a str or a bool.
    """

    table: ClassVar[str]
    """The name of the table, without `.csv`."""
    keys: ClassVar[tuple[str, ...]]
    """The columns that say what was measured, unique within a run; the others are measurements."""

    in_every_replicate: ClassVar[bool] = True
    """Whether all replicates are measured at the same points; where false, what they have learned
    decides at which."""


def column_types(of: Any) -> dict[str, Any]:
    """Return the type of each column of a row, or of a row class, by the column's name."""
    return {item.name: item.type for item in fields(of)}


@dataclass(frozen=True)
class Measured(Row):
    """One row per network, replicate, time and number that the function `measure` returns."""

    table: ClassVar[str] = "measured"
    keys: ClassVar[tuple[str, ...]] = ("network", "replicate", "time", "quantity")

    network: str  # as in weights.safetensors: the method, the width, and what else varies
    replicate: int
    time: float  # in what the study counts: epochs, steps, samples, or time of the flow
    quantity: str  # the name of the function, or of the number where it returns several
    value: float  # what it returned


def network_name(method: str, **more: object) -> str:
    """Return what a network is called in `weights.safetensors` and `measured.csv`:
    `batch/width=64`."""
    return "/".join([method, *(f"{name}={value}" for name, value in more.items())])


@dataclass
class Context:
    """What a run lends to its study."""

    device: "torch.device"
    """Where the study computes."""
    restored: "dict[str, torch.Tensor] | None"
    """The state that the study last gave to `checkpoint`, when it goes on; None when it starts."""
    progress: "Callable[..., Progress]"
    """`with context.progress(total, "training") as bar: bar.update(1, loss=...)`: a stage as
    `core.progress.Stage` names it."""
    checkpoint: "Callable[[Callable[[], dict[str, torch.Tensor]]], None]"
    """`context.checkpoint(make_state)`: saves `make_state()` when enough time has passed since the
    last save. Rows yielded before are kept, rows yielded after are computed again on resume."""
    load_data: Callable[..., Any]
    """`context.load_data(name, seed, checksums)`: the `data.datasets.Dataset` of that name; seed:
    of random pixels; checksums: of the content of its files, where it has files."""
    hand_over: "Callable[..., Iterable[Measured]]" = lambda *_: ()
    """`yield from context.hand_over(network, replicate, time, make_tensors)`, wherever one of the
    trained networks is measured: what the function `measure` makes of its named tensors, on demand.
    Those named `x` (inputs) and `H1`, `Z2`, ... (what it makes of them, samples as rows) are seen
    alone; of the others, its weights, those handed over last are kept with `keep_weights=true`."""
