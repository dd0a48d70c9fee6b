"""Convergence orders: the exponent of a drift in the learning rate h, as h goes to zero.

The local order between two learning rates is the slope of log drift against log h. It tells the
order at zero only where it no longer changes. Three learning rates have two local orders; they are
*asymptotic* if both of the following hold.

- The two local orders differ by less than SAME_ORDER.
- The power law through the two larger learning rates gives the drift at the smallest one up to less
  than SAME_DRIFT. If the learning rates are powers of two, the first condition implies this.
"""

import numpy as np
import pandas as pd

SAME_ORDER = 0.1
"""Difference of two local orders below which the order no longer changes."""

SAME_DRIFT = 0.1
"""Relative difference of a drift from a power law below which the drift follows it."""

MOST_CHANGING = 0.2
"""Largest fraction of quantities without an asymptotic order with which an order is printed. Claims
leave out as many measurements at most."""


def local_orders(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the local orders of each quantity at its three smallest learning rates.

    rows: rows with the columns `learning_rate` and `drift`, one for each learning rate. keys: the
    columns that identify a quantity. The result has these columns and

    - `fine`, `coarse`: the local orders between the two smallest learning rates, and between the
      next two.
    - `reach`: h / (h' - h) for the two smallest learning rates h and h'. The order at h = 0 is
      about fine + reach (fine - coarse).
    - `asymptotic`: whether the local orders no longer change.
    - `moves`: whether the drift is above zero at all three learning rates.

    Quantities at fewer than three learning rates are excluded.
    """
    rows = rows.sort_values("learning_rate")
    rows = rows.assign(nth=rows.groupby(keys).cumcount()).query("nth < 3")
    wide = rows.pivot(index=keys, columns="nth", values=["learning_rate", "drift"]).dropna()
    if wide.shape[1] < 6:
        return pd.DataFrame(columns=[*keys, "fine", "coarse", "reach", "asymptotic", "moves"])
    h, drift = (wide[name].to_numpy(float).T for name in ("learning_rate", "drift"))
    with np.errstate(all="ignore"):
        fine, coarse = np.diff(np.log(drift), axis=0) / np.diff(np.log(h), axis=0)
        law = drift[1] * (h[0] / h[1]) ** coarse
        follows = np.abs(drift[0] / law - 1) < SAME_DRIFT
        asymptotic = (np.abs(fine - coarse) < SAME_ORDER) & follows
    return wide.index.to_frame(index=False).assign(
        fine=fine,
        coarse=coarse,
        reach=h[0] / (h[1] - h[0]),
        asymptotic=asymptotic,
        moves=(drift > 0).all(axis=0),
    )
