"""Type checks of the tests by beartype, which accepts numpy's numbers as numbers."""

import re

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.claw import beartype_package
from jaxtyping import install_import_hook
from repository import REPOSITORY

NUMBERS = {int: int | np.integer, float: float | int | np.integer | np.floating}

CONFIGURATION = BeartypeConf(
    hint_overrides=FrozenDict(NUMBERS), claw_is_pep526=False, violation_type=TypeError
)

WITH_SHAPES = re.compile("^from jaxtyping", re.MULTILINE)

check = beartype(conf=CONFIGURATION)


def install() -> None:
    """Check the arguments and results of all functions of packages that are imported from now on.

    Shapes are compared in modules that declare them. Elsewhere these checks would take a third of
    the tests' time without effect.
    """
    source = REPOSITORY / "src"
    paths = [path for path in source.rglob("*.py") if WITH_SHAPES.search(path.read_text())]
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths]
    beartype_package("runner", conf=CONFIGURATION)
    install_import_hook(names, "typechecking.check")
