"""Draw the figure of study `norm_active`, and the preview of one run."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.names import NAMES
from runner.papers.norm_tuning.norm_active.config import ARMS
from runner.papers.norm_tuning.norm_active.tables import networks
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.evidence import Above
from runner.results.looks import PLAIN, QUIET, name_of
from runner.results.rows import Tables, nonempty, select, spread
from runner.results.style import PALE, panel, sheet, ticks

WIDTHS = [
    ("dense", 1),
    ("scales", 4),
    ("scales", 2),
    ("scales by sgd", 2),
    ("from_active", 2),
    ("from_zero", 2),
    ("from_zero at rates of from_active", 2),
]
"""The rows of panel (a), from top to bottom: the arm and m / d²."""

AXES = [
    ("dense", 1),
    ("rotated_weights", 1),
    ("singular_scales", 1),
    ("scales", 1),
    ("rotated_scales", 1),
    ("scales long", 1),
    ("rotated_scales long", 1),
    ("scales by sgd", 1),
]
"""The rows of panel (b), at m = d²."""

APART = 0.17
"""Distance between the marks of two target widths in a row."""


def label(arm: str, ratio: int, square: bool) -> str:
    """Return the name of a row. square: whether all rows have m = d², which is not named then."""
    name = name_of(NAMES["arm"], arm).drawn
    return name if square or arm == "dense" else f"{name},\n{ratio} d² units"


def draw_rows(axes: Axes, rows: pd.DataFrame, shown: list[tuple[str, int]], square: bool) -> None:
    """Draw the fraction of networks that find the target, a row for each arm, with its interval.

    rows: a result of `tables.networks`. shown: the rows, as arm and m / d². Raises NoRows if there
    are none of them.
    """
    counts = rows.groupby(["arm", "ratio", "d"])["found"].agg(count="sum", n="size")
    here = [key for key in shown if key in counts.index.droplevel("d")]
    nonempty(pd.Series(here, dtype=object), "networks of these arms")
    widths = sorted(rows["d"].unique())
    for row, key in enumerate(here):
        look = name_of(NAMES["arm"], key[0]).look or PLAIN
        for place, d in enumerate(widths):
            part = counts[counts.index == (*key, d)]
            if part.empty:
                continue
            evidence = Above(0.5).evidence(part.assign(value=part["count"] / part["n"]))
            y = row + APART * (2 * place - len(widths) + 1)
            axes.plot([evidence.low, evidence.high], [y, y], color=look.color, linewidth=1.6)
            look.line(axes, [evidence.estimate], [y], linestyle="")
            text = f"{part['count'].iloc[0]} of {part['n'].iloc[0]}"
            text += f" (d = {d:g})" if len(widths) > 1 else ""
            look.name(axes, 1.05, y, text, ha="left", transform=axes.get_yaxis_transform())
    ticks(axes.yaxis, range(len(here)), [label(*key, square) for key in here])
    axes.set_ylim(len(here) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    ticks(axes.xaxis, [0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="x", color=PALE, linewidth=0.6)


def draw_active(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the fraction of networks that find their target by what is trained, and from where.

    Panel (a) has wider frozen networks and the initial shifts, panel (b) the axes of training at m
    = d². Returns the picture, and a table with the errors of each arm.
    """
    rows = networks(tables)
    picture, ((left, right),) = sheet(1, 2, height=5.2, left=1.75, right=0.9, gap=2.75)
    d = " and ".join(f"{d:g}" for d in sorted(rows["d"].unique()))
    for axes, shown, square in ((left, WIDTHS, False), (right, AXES, True)):
        with or_empty(axes):
            draw_rows(axes, rows, shown, square)
    if right.texts:
        PLAIN.note(right, 0.3, 0.2, "W = K γ;\nκ: condition\nnumber", color=QUIET.ink)
    panel(left, "a", f"wider than d², d = {d}", "fraction of networks that find the target")
    panel(right, "b", f"at m = d², d = {d}", "fraction of networks that find the target")
    keys = ["arm", "d", "m", "learning_rate", "shift_rate"]
    drawn = spread(rows, keys, ["relative_mse", "condition_number", "units_on"])
    return picture, drawn.merge(
        rows.groupby(keys)["found"].agg(found="sum", of="size").reset_index()
    )


def say_found(tables: Tables, says: str) -> str:
    """Return the headline, with the fractions of networks that find their target.

    says: the sentence; `{scales}` and `{dense}` in it are replaced.
    """
    rows = networks(tables)
    parts = {"scales": select(rows, arm="scales", ratio=2), "dense": select(rows, arm="dense")}
    counts = {arm: f"{part['found'].sum()} of {len(part)}" for arm, part in parts.items()}
    return says.format(**counts)


FOUND = (
    "With active ReLUs and 2 d² units, training γ finds {scales} targets, a dense network {dense}"
)


def caption(tables: Tables) -> str:
    """Return the caption: what is trained in each row, with median condition numbers of K."""
    square = networks(tables).query("arm == 'scales' and ratio == 1")
    number = f" (median {square['condition_number'].median():.0f})" if len(square) else ""
    return (
        "Each row shows which fraction of networks finds its target, with an error below 0.0001 %"
        " of the variance; lines are 90 % intervals. Every hidden ReLU is active, unless the row"
        " says otherwise, so the function depends only on the matrix W = W₂ diag(γ) W₁. Networks in"
        " (a) have more than d² hidden units; where all shifts are trained, too, the hidden ones"
        " begin at 20 or 0. Networks in (b) have d² hidden units. There we train the entries of W"
        " in random axes, or γ in its own axes, along the singular vectors of the matrix K, or in"
        f" random axes; the last three have the condition number of K{number}. Learning rates were"
        " chosen on other networks. Adam's falls along a cosine, SGD's is constant."
    )


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: the fraction of networks that find the target, by arm."""
    rows = networks(tables)
    arms = [(str(arm), int(ratio)) for arm, ratio in rows.groupby(["arm", "ratio"]).groups]
    picture, ((axes,),) = sheet(1, 1, height=1.6 + 0.5 * len(arms), left=2.0, right=1.6)
    draw_rows(axes, rows, arms, square=False)
    panel(axes, "", "", "fraction of networks that find the target")
    return picture, spread(rows, ["arm", "d", "m"], ["relative_mse"])


TITLE = "networks that find their target"

CAPTION = (
    "Dots are the fraction of networks with an error below 0.0001 % of the variance; lines are"
    " 90 % intervals."
)
"""Title and caption of the preview."""

HEADLINE = ["relative_mse"]

FIGURES = [
    Drawing(
        "norm-active",
        draw_active,
        whose="our experiment",
        findings=[Finding(partial(say_found, says=FOUND), holds=["found-at-twice"])],
        marks="dots: fractions, lines: 90 % intervals",
        caption=caption,
        shows={"arm": ARMS},
    ),
]
