"""Names that parameters of several studies accept, with the module that defines them.

A new name of the program needs an entry in the table of that module. A user's name does not: the
functions that `runner.register` has given a name are in `REGISTERED`, where `core.errors.lookup`
finds them.
"""

from collections.abc import Callable, Iterator
from typing import Any

OF_IMAGES = (".npz", ".csv", ".npy")
"""Ends of the names of files that may be images; `data.own_images` refuses `.npy` with a hint."""


def names_images(data: Any) -> bool:
    """Return whether a value of `data` is a user's file of images, and no name of a dataset."""
    return isinstance(data, str) and data.lower().endswith(OF_IMAGES)


class Datasets(tuple[str, ...]):
    """Names of datasets. A user's file of images is accepted, too."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or names_images(name)


class Names(tuple[str, ...]):
    """Names of one kind, the program's. Iteration and `in` know the user's names, too."""

    kind: str

    @classmethod
    def of(cls, kind: str, *names: str) -> "Names":
        """Return the program's names of a kind, the first argument of `register`."""
        made = cls(names)
        made.kind = kind
        KINDS[kind] = made
        return made

    def __iter__(self) -> Iterator[str]:
        return iter((*super().__iter__(), *REGISTERED.get(self.kind, {})))

    def __contains__(self, name: object) -> bool:
        return name in [*self]

    def __add__(self, others: Any) -> "Names":
        return self.only(*super().__iter__(), *others)

    def only(self, *names: str) -> "Names":
        """Return some names of the program, and all of the user's."""
        made = type(self)(names)
        made.kind = self.kind
        return made


KINDS: dict[str, Names] = {}
"""The program's names of each kind that a user can extend."""

REGISTERED: dict[str, dict[str, Callable[..., Any]]] = {}
"""The user's functions and classes by kind and name."""

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
    """Return the kind of the names that a parameter accepts; empty if a user cannot add names."""
    return choices.kind if isinstance(choices, Names) else ""
