"""Names of random streams that several studies of paper D share."""

STEPS_AT_ONCE = 100
"""Number of steps whose minibatches come from one stream. A checkpoint may follow after each
block.
"""


def initialization(L: int, number: int = 0) -> str:
    """Return the name of the random stream of an initial network of depth L.

    number: index among several initial networks of this depth.
    """
    return f"initialisation/{L}" + (f"/{number}" if number > 0 else "")
