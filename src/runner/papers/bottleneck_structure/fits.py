"""When a network fits its data: one threshold for all statements of paper D about training."""

FITTED = 0.1
"""Training error below which a network fits its data (paper D, figure 1)."""
