"""Purposes of random streams that several studies of paper D share."""

STEPS_AT_ONCE = 100
"""Steps whose minibatches come from one stream; then time limit and checkpoint are checked."""


def initialization(L: int, number: int = 0) -> str:
    """Return the purpose of the random stream of an initial network of depth L.

    number: index among several initial networks of this depth.
    """
    return f"initialisation/{L}" + f"/{number}" * (number > 0)
