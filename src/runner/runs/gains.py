"""Refuse `init=gain` for a user's activation whose gain the program cannot compute."""

from math import pi

import torch

from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.core.user_functions import described
from runner.networks import own_calls
from runner.networks.activations import ACTIVATIONS, Activation, activation_of

ACCURACY = 1e-3
"""Largest relative difference of a gain on two grids. A jump of the activation gives up to 4e-4."""

STEP, END = 1e-3, 14
"""Step of the second grid, that of the first, and its end; the first grid ends at 12."""


def require_gain(config: StudyConfig) -> None:
    """Check the gain of a user's activation, if a run needs it, by a sum on a second grid.

    The second grid is wider, and its points lie between those of the first. The gains differ if the
    activation is infinite somewhere, if its second moment is infinite, or if it grows so fast that
    the first grid is too narrow. The gain of a function that draws random numbers is not checked.
    Raises InputError if the gains differ, or the function raises an error.
    """
    name = getattr(config, "activation", "")
    if getattr(config, "init", "") != "gain" or name in ACTIVATIONS:
        return
    try:
        with own_calls.run_of(config.seed):  # the calls of the run itself are counted anew
            gain, again = (activation_of(name).gain for _ in range(2))
            other = second_gain(activation_of(name))
    except InputError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise InputError(f"activation={name} failed: {described(error)}") from error
    is_random = gain == gain and again != gain  # nan does not equal itself
    if is_random or (gain and abs(other / gain - 1) <= ACCURACY):
        return
    raise InputError(
        f"init=gain: a sum cannot give the gain of activation={name} ({gain:.4g} on one grid,"
        f" {other:.4g} on another).\nThe function is infinite or nan somewhere, or grows too fast:"
        " type another init, such as init=he, or one of your own."
    )


def second_gain(sigma: Activation) -> float:
    """Return the gain of an activation by a sum on the second grid."""
    z = torch.arange(-END + STEP / 2, END, STEP, dtype=torch.float64)
    density = (-z.square() / 2).exp() * (STEP / (2 * pi) ** 0.5)
    return float((sigma.function(z.clone()).square() * density).sum().rsqrt())
