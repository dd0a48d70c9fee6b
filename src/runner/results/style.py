"""How all drawings look."""

from math import inf

from matplotlib.figure import Figure

STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "runner",
    "pdf.fonttype": 42,
}
"""The drawing style of all figures."""


def settle_scales(picture: Figure) -> None:
    """Make linear every logarithmic axis that has nothing positive to show, as of diverged runs.

    Matplotlib fails to draw such an axis.
    """
    for axes in picture.axes:
        for scale, limits, change in (
            (axes.get_xscale(), axes.get_xlim(), axes.set_xscale),
            (axes.get_yscale(), axes.get_ylim(), axes.set_yscale),
        ):
            if scale == "log" and not 0 < min(limits) < max(limits) < inf:
                change("linear")
