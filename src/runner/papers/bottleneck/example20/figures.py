"""Drawing of study `example20`, which is its quick look as well."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.figures import figure, overview


@overview
@figure("bottleneck-example20")
def draw_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Example 20: the excess norm falls while the middle representations grow."""
    metrics = tables["metrics"]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5))
    colors = plt.cm.viridis(np.linspace(0.1, 0.8, metrics["exponent"].nunique()))
    for color, (exponent, rows) in zip(colors, metrics.groupby("exponent"), strict=True):
        label = rf"$\gamma = {exponent:g}$"
        measured = rows["parameter_norm"] - 3 * rows["depth"]
        axes[0].plot(rows["depth"], measured, "o", color=color)
        axes[0].plot(rows["depth"], rows["excess"], color=color, label=label)
        axes[1].plot(rows["depth"], rows["middle_lipschitz"], "o-", color=color, label=label)
    axes[0].set(ylabel=r"$\|\theta\|^2 - 3L$ (line: closed form)", title="norm")
    axes[1].set(
        ylabel=r"largest Lipschitz constant of $\tilde\alpha_\ell$", title="representations"
    )
    for panel in axes:
        panel.set(xscale="log", yscale="log", xlabel="depth L")
        panel.legend(title=r"$\epsilon = L^{-\gamma}$")
    return figure, metrics
