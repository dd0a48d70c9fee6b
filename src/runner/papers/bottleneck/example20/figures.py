"""Drawing of study `example20`, which is its quick look as well."""

import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.style_before import ordered, points, subplots


@overview
@figure(
    "bottleneck-example20",
    caption="The construction of Example 20 for several γ, where ε falls as the power -γ of the"
    " depth L. Left: what the squared norm of the parameters has above 3 L; points are measured,"
    " lines the closed form. Right: the largest Lipschitz constant of the middle representations."
    " Nothing is random here, and nothing is trained.",
)
def draw_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Example 20: the excess norm falls while the middle representations grow."""
    metrics = tables["metrics"]
    picture, (norms, representations) = subplots(1, 2, size=(8.4, 3.8))
    looks = ordered(sorted(metrics["exponent"].unique()))
    for exponent, rows in metrics.groupby("exponent"):
        look = looks[exponent]
        measured = rows["parameter_norm"] - 3 * rows["depth"]
        norms.plot(rows["depth"], measured, markersize=points(5), **look.dots)
        norms.plot(rows["depth"], rows["excess"], **look.line)
        label = rf"$\gamma = {exponent:g}$"
        representations.plot(rows["depth"], rows["middle_lipschitz"], label=label, **look.both)
    norms.set(ylabel=r"$\|\theta\|^2 - 3L$ (line: closed form)", title="norm")
    representations.set(
        ylabel=r"largest Lipschitz constant of $\tilde\alpha_\ell$", title="representations"
    )
    for panel in (norms, representations):
        panel.set(xscale="log", yscale="log", xlabel="depth L")
    handles, labels = representations.get_legend_handles_labels()
    title = r"$\epsilon = L^{-\gamma}$"
    picture.legend(handles, labels, loc="outside lower center", ncols=4, title=title)
    return picture, metrics
