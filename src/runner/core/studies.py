"""The parts of a study: typed parameters, rows, and the context that a run gives to it.

A study is a folder (see `core.catalogue`) with these files:

    config.py    one frozen dataclass of parameters: type, default, range and help of each
    rows.py      the row classes, which are the columns of its tables with their meaning
    study.py     run(config, context), which yields the rows
    figures.py   FIGURES = [Drawing(...), ...], overview(tables), the preview of one run, and
                 HEADLINE = ["test_mse", ...], the numbers that the picture of a sweep shows
    claims.py    CLAIMS = {figure: [Claim(...), ...], ...}

`figures.py` and `claims.py` are optional, and so are overview and HEADLINE. A study with many
figures has a folder `figures/` instead. Neither this module nor a `config.py` or `rows.py` imports
torch, so that the command line can check a configuration and list columns at once.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import ge, gt, le
from typing import TYPE_CHECKING, Any, ClassVar

from runner.core.choices import names_images
from runner.core.errors import InputError, nearest
from runner.core.streams import Streams, streams

if TYPE_CHECKING:
    import torch

    from runner.core.progress import Progress

OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""Pattern of a user's function in a configuration: `module:function`."""

MOST = 1_000_000
"""Largest number of replicates, layers and other things that a study counts one by one."""

LARGEST = 2**63 - 1
"""The largest whole number that a tensor or a column of a table holds."""

LARGEST_FACTOR = 1e6
"""Largest factor of a term of a loss, and of initial values. Adam squares the gradient: with a
larger factor float32 overflows, and Adam takes no step."""

LARGEST_STEP = 1e38
"""Largest learning rate that float32 holds. A network that diverges is a result: NaN."""

LIMITS = {"minimum": ("at least", ge), "above": ("above", gt), "maximum": ("at most", le)}
"""How each limit of a parameter is printed and tested. nan satisfies no limit."""


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
    """Return a dataclass field for a parameter of a study, with its help text and its range.

    - minimum, maximum: inclusive limits;
    - above: an exclusive lower limit;
    - choices: the names that are allowed;
    - own: whether a user's function, `module:function`, is also allowed. The code of this function
      then counts as code of the run.

    The limits of a list are the limits of each element. A list must not be empty or repeat a value.
    None is allowed if the field's type allows it. nan satisfies no limit. No integer may exceed 64
    bits.
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
    """Base class of a study's parameters, which alone determine the numbers of a run.

    Raises InputError if a value is outside its range.
    """

    study: ClassVar[str]
    version: ClassVar[int] = 1
    """A number that is raised when the same parameters give other numbers than before.

    Runs of an earlier version are then no longer used.
    """
    named: ClassVar[tuple[str, ...]] = ()
    """The main parameters, such as `("depth",)`. The name of a run's folder always has them, and so
    has the title of a run's picture."""
    unused: ClassVar[Mapping[str, Collection[str]]] = {}
    """The names of parameters without effect, for each setting such as `measure=product`.

    If a command has the setting, the study's help only names these parameters.
    """

    random: ClassVar[bool] = True
    """Whether the numbers depend on the seed. If not, a figure refuses several seeds."""

    seed: int = parameter("seed of all random numbers", 0, minimum=0)

    def __post_init__(self) -> None:
        check_fields(self)

    def identity(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, by name.

        They are part of the name of the run's folder.
        """
        values = {item.name: (getattr(self, item.name), default_of(item)) for item in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the study's random streams, in a fixed order.

        A purpose is a text, such as "weights". The list may depend on the parameters.
        `core.streams` explains why the order matters.
        """
        return ()

    def streams(self) -> Streams:
        """Return the random streams of the study's seed and purposes."""
        return streams(self.seed, self.purposes())

    def stream(self, replicate: int, purpose: str) -> "torch.Generator":
        """Return a new random generator for one replicate (its index, from 0) and one purpose.

        Raises KeyError if `purposes` does not list the purpose.
        """
        return self.streams().generator(replicate, purpose)

    def refuse(self, names: Collection[str], where: str) -> None:
        """Raise InputError if one of the named parameters differs from its default.

        names: parameters without effect. where: the setting with which they have none, for the
        message.
        """
        for name, value in self.identity().items():
            if name in names:
                raise InputError(f"{name}={value} changes nothing with {where}: leave it out")

    def grids(self) -> dict[str, list[Any]]:
        """Return the parameters from whose values a run chooses by training separate networks.

        These are the learning rates of studies with selection replicates. With a single value there
        is nothing to choose.
        """
        values = {**vars(self)}
        trains = "selection_replicates" in values and values.get("train", True)
        grid = values.get("learning_rates") or []
        return {"learning_rates": grid} if trains and len(grid) > 1 else {}

    def own_images(self) -> str:
        """Return the name of the user's file of images, if the parameter `data` names one.

        Otherwise the result is empty.
        """
        data = getattr(self, "data", None)
        return data if names_images(data) else ""

    def own_functions(self) -> tuple[str, ...]:
        """Return the user's functions among the parameters' values, as `module:function`."""
        values = [getattr(self, item.name) for item in fields(self) if item.metadata["own"]]
        return tuple(value for value in values if value and OWN.fullmatch(value))


@dataclass(frozen=True)
class TrainingConfig(StudyConfig):
    """Base class of the parameters of studies that train networks.

    Runs of these studies can store the trained weights. They can also give networks to a user's
    function, which measures them.
    """

    measure: str | None = parameter(
        "your own function that measures networks, module:function; its numbers go to measured.csv",
        None,
        own=True,
    )


def check_fields(config: Any) -> None:
    """Check the value of each field of a dataclass whose fields `parameter` has made.

    Raises InputError if a value is outside its range, or a list is empty or repeats a value.
    """
    for item in fields(config):
        name, value = item.name, getattr(config, item.name)
        if not isinstance(value, list):
            _check(item, value)
            continue
        if not value:
            help = item.metadata["help"]
            raise InputError(f"{name}=[] is empty: give at least one value ({help})")
        for index, element in enumerate(value):
            if isinstance(element, list | tuple | dict):
                raise InputError(f"{name}={value} holds {element}: one list of values is needed")
            _check(item, element)
            if element in value[:index]:
                listed = ",".join(map(str, value))
                raise InputError(f"{name}=[{listed}] holds {element} twice: give each value once")


def _check(item: Field, value: Any) -> None:
    """Raise InputError if a value is outside the range of its field, or beyond 64 bits."""
    limits, name = item.metadata, item.name
    if value is None or limits["own"] and OWN.fullmatch(value):
        return
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError(f"{name} is too large: give a number between -{LARGEST} and {LARGEST}")
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            hint = nearest(str(value), limits["choices"])
            raise InputError(f"{name}={value} is unknown: {hint}")
    elif limits["own"]:
        raise InputError(f"{name}={value} names no function: write module:function")
    rules = [(*rule, limits[key]) for key, rule in LIMITS.items() if limits[key] is not None]
    if not all(holds(value, limit) for _, holds, limit in rules):
        expected = " and ".join(f"{words} {limit}" for words, _, limit in rules)
        raise InputError(f"{name}={value} must be {expected} ({limits['help']})")


class Row:
    """Base class of dataclasses whose objects are the rows of a table.

    The fields are the columns of the table, in order. A field is an int, a float, a str or a bool.
    """

    table: ClassVar[str]
    """The name of the table, without `.csv`."""
    keys: ClassVar[tuple[str, ...]]
    """The columns that identify a row within a run. All other columns are measurements."""

    in_every_replicate: ClassVar[bool] = True
    """Whether all replicates are measured at the same points. If false, the course of training
    decides at which points a replicate is measured."""

    averages: ClassVar[bool] = False
    """Whether a row has averages over all replicates, `x` with the standard error `x_se` and the
    deviation `x_sd`. Rows of several seeds are then averaged, and whole numbers added."""


def column(meaning: str, default: Any = MISSING) -> Any:
    """Return a dataclass field for a column of a table, with its meaning, which `--columns` prints.

    The meaning of a replicate, a learning rate and an epoch, and of a column that is named as a
    parameter, need not be given again: such a field has only its type.
    """
    return field(default=default, metadata={"help": meaning})


def column_types(row: Any) -> dict[str, Any]:
    """Return the type of each column, by the column's name. row: a row or a row class."""
    return {item.name: item.type for item in fields(row)}


def column_meanings(row: Any) -> dict[str, str]:
    """Return the meaning of each column, by its name; empty if its field does not say it.

    row: a row or a row class.
    """
    return {item.name: item.metadata.get("help", "") for item in fields(row)}


@dataclass(frozen=True)
class Measured(Row):
    """One row for each network, replicate, time and number that a user's function returns.

    The parameter `measure` names this function.
    """

    table: ClassVar[str] = "measured"
    keys: ClassVar[tuple[str, ...]] = ("network", "replicate", "time", "quantity")

    network: str = column("as in weights.safetensors: the method, the width, and what else varies")
    replicate: int = column("number of the replicate (independent repetition), from 0")
    time: float = column("in what the study counts: epochs, steps, samples, or time of the flow")
    quantity: str = column("the name of the function, or of the number where it returns several")
    value: float = column("what it returned")


def network_name(method: str, **more: object) -> str:
    """Return the name of a network in `weights.safetensors` and `measured.csv`: `batch/width=64`.

    more: values by which networks of one method differ, such as the width.
    """
    return "/".join([method, *(f"{name}={value}" for name, value in more.items())])


@dataclass
class Context:
    """What the program gives to the function `run` of a study."""

    device: "torch.device"
    """The device on which the study computes."""
    restored: "dict[str, torch.Tensor] | None"
    """The state that the study last gave to `checkpoint`; None if the run starts anew."""
    progress: "Callable[..., Progress]"
    """A function that returns a progress bar: `with context.progress(total, "training") as bar:
    bar.update(1)`. Its second argument is one of the stages in `core.progress.Stage`."""
    checkpoint: "Callable[[Callable[[], dict[str, torch.Tensor]]], None]"
    """`context.checkpoint(make_state)` stores the tensors `make_state()`, if enough time has passed
    since the last checkpoint. A resumed run has the rows that were yielded before the checkpoint,
    and computes all later rows."""
    load_data: Callable[..., Any]
    """`context.load_data(name, seed, checksums)` returns a `data.datasets.Dataset`. seed: the seed
    of random pixels. checksums: the SHA-256 of each file of the dataset; None if it has no
    files."""
    hand_over: "Callable[..., Iterable[Measured]]" = lambda *_: ()
    """`yield from context.hand_over(network, replicate, time, make_tensors)` gives the tensors of a
    trained network to the user's function `measure`, and yields its numbers as rows. make_tensors:
    a function that returns the tensors by name: the inputs `x`, the activations `H1`, `Z2`, ...
    (samples as rows), and the weights. With `keep_weights=true` the run stores the last weights of
    each network."""
