"""Schedules of the learning rate over the steps of the training."""

from math import cos, pi

FINAL_FRACTION = 0.01
"""The learning rate at the end of the exponential schedule, as a fraction of the initial one."""


def cosine_decay(step: int, steps: int) -> float:
    """Return the learning rate at a step, as a fraction of the initial one.

    The fraction is half a period of a cosine: it falls from 1 at step 0 to 0 at step `steps`.
    """
    return (1 + cos(pi * step / steps)) / 2


SCHEDULES = {
    "constant": lambda step, steps: 1.0,
    "cosine": cosine_decay,
    "exponential": lambda step, steps: FINAL_FRACTION ** (step / steps),
}
"""The schedules by their names in configurations. Each returns the learning rate at a step, as a
fraction of the initial one."""
