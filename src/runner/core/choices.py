"""Names that parameters of several studies accept, with the modules that define them.

To add a name to the program, add it here and to the table in the module. The user's names need no
entry: `runner.register` puts their functions into `REGISTERED`, where `lookup` finds them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard, TypeVar, cast

from runner.core.errors import OWN_NAME, InputError, nearest
from runner.core.torch_optimizers import PREFIX, optimizer_class

T = TypeVar("T")

OF_IMAGES = (".npz", ".csv", ".npy")
"""Endings of files that may be images. `data.own_images` refuses `.npy`, with a hint."""


def names_images(data: Any) -> TypeGuard[str]:
    """Return whether a value of the parameter `data` is the name of a user's file of images."""
    return isinstance(data, str) and data.lower().endswith(OF_IMAGES)


class Datasets(tuple[str, ...]):
    """The names of datasets. `in` also accepts the name of a user's file of images.

    A parameter with these choices is called `data`. `StudyConfig.own_images` returns such a file.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or names_images(name)


class Names(tuple[str, ...]):
    """The program's names of one kind, such as activations.

    Iteration and `in` also include the names that the user has registered. An optimizer of torch,
    `torch.optim:AdamW`, is registered as soon as it is looked for.
    """

    kind: str
    hint = f" ({OWN_NAME})"

    @classmethod
    def of(cls, kind: str, *names: str) -> "Names":
        """Return names of the program as a `Names` object, which is also stored in `KINDS`.

        kind: the first argument of `runner.register`, such as `activation`. names: the program's
        names.
        """
        made = cls(names)
        made.kind = kind
        KINDS[kind] = made
        return made

    def __iter__(self) -> Iterator[str]:
        return iter((*super().__iter__(), *REGISTERED.get(self.kind, {})))

    def __contains__(self, name: object) -> bool:
        if self.kind == "optimizer" and isinstance(name, str) and name.startswith(PREFIX):
            REGISTERED.setdefault("optimizer", {})[name] = optimizer_class(name)
        return name in [*self]

    def __add__(self, others: Any) -> "Names":
        return self.only(*super().__iter__(), *others)

    def only(self, *names: str) -> "Names":
        """Return a copy with only these names of the program, and all names of the user."""
        made = type(self)(names)
        made.kind = self.kind
        return made


KINDS: dict[str, Names] = {}
"""The program's names of each kind that a user can extend."""

REGISTERED: dict[str, dict[str, Callable[..., Any]]] = {}
"""The functions and classes that the user has registered, by kind and name."""

ACTIVATIONS = Names.of("activation", "relu", "linear", "tanh", "leaky_relu", "gelu")
"""`networks.activations`"""

NORMALIZATIONS = Names.of("normalization", "none", "batch", "batch_no_mean", "layer", "rms")
"""`networks.normalization`"""

INITIALIZATIONS = Names.of("init", "pytorch", "he", "unit", "asymmetric", "orthogonal", "gain")
"""`networks.initialization`"""

OPTIMIZERS = Names.of("optimizer", "sgd", "momentum", "adam")
"""`training.optimizers`"""

LAWS = Names.of("law", "gaussian", "uniform", "rademacher", "asymmetric")
"""`papers.batch_norm_rank.rank_chain.engines`"""

ARCHITECTURES = Names.of("architecture", "vgg19", "resnet50")
"""`networks.vgg` and `networks.resnet`"""

SCHEDULES = ("constant", "cosine", "exponential")
"""`training.schedules`"""


def kind_of(choices: Any) -> str:
    """Return the kind of names that a parameter accepts, such as `activation`.

    choices: the allowed values of the parameter. The kind is empty if users cannot register further
    names.
    """
    return choices.kind if isinstance(choices, Names) else ""


def lookup(key: str, name: str, known: Mapping[str, T]) -> T:
    """Return the value of a name in the table `known`, or the function that the user registered.

    key: the parameter that has the name as its value, such as `activation`. A user registers
    functions for a parameter with `runner.register`. Raises InputError for an unknown name.
    """
    if name in (own := REGISTERED.get(key, {})):
        return cast(T, own[name])
    if name not in known:
        raise InputError(f"{key}={name} is unknown: {nearest(name, known)}")
    return known[name]
