"""How a learning rate falls over the steps of a training."""

from math import cos, pi


def cosine_decay(step: int, steps: int) -> float:
    """The fraction of the starting rate at a step, from 1 to 0 along half a cosine."""
    return (1 + cos(pi * step / steps)) / 2
