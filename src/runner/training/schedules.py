"""How a learning rate falls over the steps of a training."""

from math import cos, pi

FINAL_FRACTION = 0.01
"""The exponential schedule ends at this fraction of the rate."""


def cosine_decay(step: int, steps: int) -> float:
    """Return the fraction of the starting rate at a step, from 1 to 0 along half a cosine."""
    return (1 + cos(pi * step / steps)) / 2


SCHEDULES = {
    "constant": lambda step, steps: 1.0,
    "cosine": cosine_decay,
    "exponential": lambda step, steps: FINAL_FRACTION ** (step / steps),
}
"""By the names that configurations use: the fraction of the starting rate at a step."""
