"""The order with which a drift goes to zero with the learning rate."""

import numpy as np
import pandas as pd

ORDER_ERROR = 0.1
"""What an order extrapolated to rate zero may be off by."""


def order_at_zero(series: pd.DataFrame) -> float:
    """The order of `drift` in `learning_rate` as the rate goes to zero (Richardson extrapolation).

    Between two rates h the order is p + O(h); that of the smallest two and that of the next two
    give p. inf where there is no drift at all, which converges faster than any power; nan with
    fewer than three rates.
    """
    finest = series.sort_values("learning_rate")[["learning_rate", "drift"]].head(3)
    if len(finest) < 3:
        return np.nan
    h, drift = finest.to_numpy().T
    if not (drift > 0).all():
        return np.inf
    fine, coarse = np.diff(np.log(drift)) / np.diff(np.log(h))
    return fine + (fine - coarse) * h[0] / (h[1] - h[0])
