"""The type checker of the tests: beartype, for which numpy's numbers are numbers as well."""

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

NUMBERS = {int: int | np.integer, float: float | int | np.integer | np.floating}

check = beartype(conf=BeartypeConf(hint_overrides=FrozenDict(NUMBERS)))
