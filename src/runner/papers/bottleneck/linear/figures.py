"""Drawing of study `linear`, which is its quick look as well."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.bottleneck.linear.tables import REMAINDERS, with_remainders
from runner.results.claims import Tables
from runner.results.figures import figure, overview

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
STYLES = (("tab:blue", "o"), ("tab:orange", "s"), ("tab:green", "^"))


@overview
@figure("bottleneck-linear")
def draw_linear(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: ||theta||^2 against R(A; L). Right: what each order of the expansion leaves of it."""
    metrics = with_remainders(tables["metrics"])
    figure, (norms, remainders) = plt.subplots(1, 2, figsize=(8.4, 3.6))
    depths = sorted(metrics["depth"].unique())
    for k, rows in metrics.groupby("rank"):
        norms.plot(depths, k * np.array(depths), ":", color="grey", linewidth=1)
        end = {"xytext": (0, -12), "textcoords": "offset points", "ha": "right"}
        norms.annotate(f"{k} L", (depths[-1], k * depths[-1]), color="grey", **end)
        norms.plot(rows["depth"], rows["parameter_norm"], ".", color=f"C{k}")
    norms.plot(
        metrics["depth"],
        metrics["representation_cost"],
        "o",
        color="black",
        markerfacecolor="none",
        markersize=6,
        markeredgewidth=0.6,
        label="R(A; L)",
    )
    for k in sorted(metrics["rank"].unique()):
        norms.plot([], [], ".", color=f"C{k}", label=rf"$\|\theta\|^2$ after training, rank {k}")
    norms.set(xlabel="depth L", ylabel="squared norm", title="Trained deep linear networks")
    norms.legend()
    drawn = metrics.groupby("depth")[list(REMAINDERS)].agg(["median", "min", "max"])
    for (color, marker), column in zip(STYLES, REMAINDERS, strict=True):
        rows = drawn[column]
        remainders.plot(rows.index, rows["median"], f"{marker}-", color=color, label=LABELS[column])
        remainders.fill_between(rows.index, rows["min"], rows["max"], color=color, alpha=0.15)
    remainders.set(xscale="log", yscale="log", xlabel="depth L", ylabel="remainder, absolute")
    remainders.set_title("Orders of the expansion in 1/L")
    remainders.set_xticks(depths, labels=[str(depth) for depth in depths])
    remainders.minorticks_off()
    remainders.legend()
    return figure, metrics
