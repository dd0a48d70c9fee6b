"""Schedules of the learning rate over the steps of a training."""

from math import cos, pi

FINAL_FRACTION = 0.01
"""Final fraction of the learning rate in the exponential schedule."""


def cosine_decay(step: int, steps: int) -> float:
    """Return the fraction of the initial learning rate at a step: half a cosine from 1 to 0."""
    return (1 + cos(pi * step / steps)) / 2


SCHEDULES = {
    "constant": lambda step, steps: 1.0,
    "cosine": cosine_decay,
    "exponential": lambda step, steps: FINAL_FRACTION ** (step / steps),
}
"""Fraction of the initial learning rate at a step, by the schedule's name in configurations."""
