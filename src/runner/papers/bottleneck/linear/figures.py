"""Drawing of study `linear`, which is its quick look as well."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck.linear.tables import REMAINDERS, with_remainders
from runner.papers.bottleneck.looks import ORDERS, rank_look
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.style_before import BLACK, band, beside, guide, points, subplots

LABELS = dict(
    zip(
        REMAINDERS,
        (
            r"$\|\theta\|^2 - Lk$",
            r"$\ldots - 2\log|A|_+$",
            r"$\ldots - \|\log_+ A^TA\|^2 / (2L)$",
        ),
        strict=True,
    )
)


@overview
@figure(
    "bottleneck-linear",
    caption="Left: squared norm of the parameters of trained deep linear networks against the depth"
    " L, every replicate, by the rank k that they end at; circles: the representation cost R(A; L)"
    " of the same networks; dotted: k L. Right: what each order of the expansion in 1/L leaves of"
    " the squared norm; lines are medians over the replicates, bands their whole range. Targets are"
    " random matrices of singular values between 1 and 3.",
)
def draw_linear(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: ||theta||^2 against R(A; L). Right: what each order of the expansion leaves of it."""
    metrics = with_remainders(tables["metrics"])
    picture, (norms, remainders) = subplots(1, 2, size=(8.6, 4.0))
    _draw_norms(norms, metrics)
    depths = sorted(metrics["depth"].unique())
    drawn = metrics.groupby("depth")[list(REMAINDERS)].agg(["median", "min", "max"])
    for look, column in zip(ORDERS, REMAINDERS, strict=True):
        rows = drawn[column]
        remainders.plot(rows.index, rows["median"], label=LABELS[column], **look.both)
        band(remainders, rows.index, rows["min"], rows["max"], look.color)
    remainders.set(xscale="log", yscale="log", xlabel="depth L", ylabel="remainder, absolute")
    remainders.set_title("orders of the expansion in 1/L")
    remainders.set_xticks(depths, labels=[str(depth) for depth in depths])
    remainders.minorticks_off()
    for panel in (norms, remainders):
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return picture, metrics


def _draw_norms(axes: Axes, metrics: pd.DataFrame) -> None:
    """The norms of every network by the rank it ends at, each in the circle of its cost."""
    depths = np.array(sorted(metrics["depth"].unique()))
    small = {"markersize": points(3)}
    for k, rows in metrics.groupby("rank"):
        axes.plot(depths, k * depths, **guide())
        label = rf"$\|\theta\|^2$ after training, rank {k}"
        axes.plot(rows["depth"], rows["parameter_norm"], label=label, **rank_look(k).dots | small)
    circle = {"marker": "o", "fillstyle": "none", "linestyle": "none", "color": BLACK}
    circle |= {"markersize": points(7), "markeredgewidth": points(0.6), "label": "R(A; L)"}
    axes.plot(metrics["depth"], metrics["representation_cost"], **circle)
    axes.set(xlabel="depth L", ylabel="squared norm", title="trained deep linear networks")
    for k in sorted(metrics["rank"].unique()):
        beside(axes, k * depths[-1], f"{k} L")
