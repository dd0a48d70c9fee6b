"""Purposes of random streams that several studies of paper D share."""

STEPS_AT_ONCE = 100
"""Steps whose minibatches come from one stream; then the clock and the checkpoint are looked at."""


def initialization(L: int, number: int = 0) -> str:
    """Return the purpose of the stream of the initial network, or of one of several, of depth L."""
    return f"initialisation/{L}" + f"/{number}" * (number > 0)
