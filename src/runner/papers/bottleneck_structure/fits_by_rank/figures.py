"""Draw the figure of study `fits_by_rank`, which is also its preview."""

import pandas as pd
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.fits_by_rank.tables import fitting
from runner.papers.bottleneck_structure.looks import rank_look
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import NoRows, Tables, nonempty, select
from runner.results.style import name_ends, panel, sheet, ticks


def counted(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the number of networks that fit, by N (index) and rank (columns)."""
    return fitting(metrics).groupby(["samples", "rank"])["fits"].sum().unstack()


def say_ranks(tables: Tables) -> str:
    """Return the headline: how many networks of each rank fit the largest number of points.

    Raises NoRows unless ranks 1 and 2 were trained, and rank 2 fits the most points more often.
    """
    fits, starts = counted(tables["metrics"]), tables["metrics"]["replicate"].nunique()
    if not {1, 2} <= {*fits} or fits[2].iloc[-1] <= fits[1].iloc[-1]:
        raise NoRows("networks of rank 2 do not fit more often")
    few, many = (fits.iloc[n] for n in (0, -1))
    return (
        f"Of {starts} initializations {few[1]} of rank 1 and {few[2]} of rank 2 fit"
        f" {fits.index[0]} points; {many[1]} and {many[2]} fit {fits.index[-1]}"
    )


def draw_ranks(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw against N the number of networks that fit (a) and their squared norm (b), by rank.

    Returns the picture, and the table `metrics` with the column `fits`.
    """
    metrics = fitting(tables["metrics"])
    picture, ((left, right),) = sheet(1, 2, height=4.2, gap=1.3, right=1.0, top=0.5)
    shares = metrics.groupby(["rank", "samples"])["fits"].sum()
    networks = metrics[metrics["fits"]]
    norms = networks.groupby(["rank", "samples"])["parameter_norm"].median()
    most = metrics["replicate"].nunique()
    left.set_ylim(-0.03 * most, 1.08 * most)
    left.yaxis.get_major_locator().set_params(integer=True)
    for axes, lines in ((left, shares), (right, norms)):
        axes.set_xscale("log")
        ticks(axes.xaxis, sorted(metrics["samples"].unique()))
        with or_empty(axes):
            ends = []
            for rank, line in nonempty(lines, "network that fits").groupby("rank"):
                look, line = rank_look(rank), line.droplevel("rank")
                if axes is right:
                    rows = select(networks, rank=rank)
                    look.each(axes, rows["samples"], rows["parameter_norm"])
                look.line(axes, line.index, line)
                for N, count in line.iloc[[0, -1]].items() if axes is left else ():
                    if count > 0:
                        away: dict = {"textcoords": "offset points"}
                        away |= {"xytext": (0, 12 if rank > 1 else -13)}
                        look.name(axes, N, count, str(count), **away)
                ends.append((line.iloc[-1], f"rank {rank}", look))
            name_ends(axes, ends)
    panel(left, "a", f"networks that fit, of {most}", "training points N")
    panel(right, "b", "‖θ‖² of networks that fit", "training points N")
    return picture, metrics


HEADLINE = ["error", "parameter_norm"]

FIGURES = [
    Drawing(
        "bottleneck-ranks",
        draw_ranks,
        marks="dots: networks, lines: counts (a) and medians (b)",
        findings=[Finding(say_ranks, holds=["rank-2-fits-more"])],
        caption="Networks of rank 1 and 2 (one or two neurons in each layer of the middle third)"
        " are trained by the same procedure on the same N values of a function of rank 2. (a)"
        " shows how many of them fit (summed squared error below 0.1), (b) the squared parameter"
        " norm of those that fit.",
    ),
]

overview = draw_ranks
