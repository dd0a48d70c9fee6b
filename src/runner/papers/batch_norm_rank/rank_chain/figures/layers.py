"""Draw what layers do: figure 3b, Lemmas 3 and 7, and how many directions of the input survive."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.looks import ROOT
from runner.papers.batch_norm_rank.rank_chain.figures.parts import (
    BRANCH,
    BY_WIDTH,
    TWO,
    doubling,
    key_of_gamma,
    lines_by_gamma,
    name_power,
)
from runner.papers.batch_norm_rank.rank_chain.tables import (
    crossings,
    gamma,
    powers_left_over,
    remainders,
)
from runner.results import style
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name
from runner.results.rows import Tables, nonempty, select, spread
from runner.results.style import (
    DASHED,
    GREY,
    INK,
    QUIET,
    Look,
    level,
    name_ends,
    panel,
    shades,
    sheet,
    ticks,
)

SOFT = 0.5**0.5
"""Threshold of the soft rank, as a singular value."""


def say_apart(tables: Tables) -> str:
    """Return the headline of figure 3b: how the mean soft rank rises from nearly parallel inputs.

    Its numbers are the soft ranks at layer 0 and at layer 10. Raises NoRows if no network without
    skip connections was run.
    """
    rank, layer = _soft_ranks(select(tables["spectrum"], skip=inf))
    return (
        f"Batch norm pulls nearly parallel inputs apart: within {layer} layers the soft rank rises"
        f" from {rank[0]:.0f} to {rank[layer]:.1f}"
    )


def _soft_ranks(rows: pd.DataFrame) -> tuple[pd.Series, int]:
    """Return the mean soft rank of each layer, and the layer in the headline, at most 10."""
    keys = [rows[key] for key in ("width", "skip", "replicate", "layer")]
    rank = (rows["singular_value"] >= SOFT).groupby(keys).sum().groupby("layer").mean()
    return rank, min(10, rank.index.max())


def draw_fig3b(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 3b: the ten largest singular values by layer, from nearly parallel inputs.

    The right panel has a logarithmic axis. Returns the picture, and a table with median and range
    of each singular value by layer.
    """
    spectrum = tables["spectrum"]
    shown = spectrum[spectrum["skip"] == spectrum["skip"].max()]
    values = spread(shown, ["layer", "index"], ["singular_value"])
    colors = shades(sorted(values["index"].unique()), style.NAVY, style.BLUE, style.SKY, "#a8d8f0")
    picture, ((left, right),) = sheet(gap=0.75, right=1.35)
    right.set_yscale("log")

    def named(index: int) -> Name:
        text = "i = 2 … 7" if index == 4 else f"i = {index}"
        return Name(text, Look(colors[index], "", width=3.4 if index == 1 else 2.0))

    columns, first = ("layer", "singular_value", "index", named), [*colors][::-1]
    largest = values[values["index"] == 1]
    curves(left, largest, *columns, replicates="range", linestyle="")  # only the band
    for axes in (left, right):
        ends = dict(zip(first, curves(axes, values, *columns, first=first, zorder=4), strict=True))
        axes.set_xlim(0, max(1, values["layer"].max()))
        level(axes, SOFT)
    left.set_ylim(0, None)
    ticks(right.yaxis, [0.01, 0.1, 1])
    if {2, 7} <= set(ends):
        bracket = {"transform": right.get_yaxis_transform(), "clip_on": False, "linewidth": 1.6}
        right.plot([1.015, 1.015], [ends[2][0], ends[7][0]], color=colors[4], **bracket)
    style.key(left, {"√½: the soft rank counts\nthe values above it": QUIET}, loc="upper right")
    rank, layer = _soft_ranks(shown)
    low, high = right.get_ylim()
    right.set_ylim(low, 3 * high)
    for at, text in ((0, f"{rank[0]:.0f}"), (layer, f"{rank[layer]:.1f} = mean soft rank")):
        right.plot([at, at], [SOFT, 1.3 * high], color=INK, linewidth=1.2, clip_on=False)
        side: dict = {"textcoords": "offset points", "xytext": (0, 3), "va": "bottom"}
        style.PLAIN.name(right, at, 1.3 * high, text, ha="left", size=style.SMALL, **side)
    name_ends(right, [ends[i] for i in (1, 4, 8, 9, 10) if i in ends])
    panel(left, "a", "ten largest singular values / √N", "layer")
    panel(right, "b", "the same on a logarithmic axis", "layer")
    return picture, values


RESIDUAL = {0.1: Look(style.ORANGE, ""), 0.5: Look(style.RUST, "")}
"""Looks by gamma in pictures without batch norm, darker for a larger gamma."""

GAP = Look(style.INK, "", style.DOTTED, 1.6)


def say_collapse(tables: Tables) -> str:
    """Return the headline of Lemma 3: the number of layers in which σ₂/σ₁ falls tenfold.

    The networks have the largest γ and Gaussian weights. Raises NoRows if no network has Gaussian
    weights.
    """
    products = select(tables["products"], law="gaussian")
    strong = products["skip"].max()
    products = select(products, skip=strong)
    end = products["layer"].max()
    last = products.loc[products["layer"] == end, "log_ratio"].median()
    return (
        "Without batch norm skips do not save the rank: σ₂/σ₁ falls tenfold in"
        f" {-end * np.log(10) / last:.0f} layers (γ = {strong:g})"
    )


def say_moving(tables: Tables) -> str:
    """Return the headline of `say_collapse`, and that the matrix of activations does not converge.

    Raises NoRows if no network has Gaussian weights.
    """
    return f"{say_collapse(tables)}; activations keep moving"


def draw_lemma3(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw an illustration of Lemma 3 by layer: σ₂/σ₁ without normalization (a), and steps (b).

    A step is the distance that the matrix of activations, scaled to norm one, moves in one layer.
    Only layers that all gammas have are drawn. Lines are medians, bands the middle half. Returns
    the picture, and a table with medians, ranges and quartiles for each gamma, distribution and
    layer.
    """
    products = tables["products"].assign(ratio=lambda rows: np.exp(rows["log_ratio"]))
    products = products[products["layer"] <= products.groupby("skip")["layer"].max().min()]
    keys, columns = ["skip", "law", "layer"], ["ratio", "step_length"]
    medians, groups = spread(products, keys, columns), products.groupby(keys)[columns]
    for share in (25, 75):
        medians = medians.merge(groups.quantile(share / 100).add_suffix(f"_{share}"), on=keys)
    end, floor = max(1, products["layer"].max()), max(1e-15, 0.01 * medians["ratio_25"].min())
    picture, ((left, right),) = sheet(gap=1.55, right=0.9)
    left.set_yscale("log")
    for axes, column, height in ((left, "ratio", (floor, 3)), (right, "step_length", (0, None))):
        names = []
        for (skip, law), rows in medians.groupby(["skip", "law"]):
            look = RESIDUAL.get(skip, Look(style.VERMILION, ""))
            if law == "gaussian":
                look.band(axes, rows["layer"], rows[f"{column}_25"], rows[f"{column}_75"])
                name, is_strong = gamma(skip), skip == products["skip"].max()
                if axes is left and is_strong and rows[column].iloc[-1] < 0.1:
                    fall = -end * np.log(10) / np.log(rows[column].iloc[-1])
                    name += f":\ntenfold in\n{fall:.0f} layers"
                names.append((rows[column].iloc[-1], name, look))
            else:
                look = replace(look, width=1.4, dashes=DASHED)
            look.line(axes, rows["layer"], rows[column], zorder=2 + (law != "gaussian"))
        axes.set(xlim=(0, end), ylim=height)
        name_ends(axes, names)
    for gap in products.groupby("skip")["gap"].first():
        GAP.line(left, [0, end], [1, np.exp(-gap * end)], zorder=4)
    kinds = {"Gaussian weights": Look(INK, ""), "uniform weights": Look(INK, "", DASHED, 1.4)}
    kinds |= {"rate predicted by\nLyapunov exponents": GAP}
    style.key(left, kinds, title=BRANCH, loc="lower left")
    panel(left, "a", "σ₂/σ₁ of the activations H", "layer")
    panel(right, "b", "change of H / ‖H‖ in a layer", "layer")
    level(right, 0, "0 if H / ‖H‖ converges")
    return picture, medians


def say_expansion(tables: Tables) -> str:
    """Return the headline of Lemma 7: the number of matrices, and the remainder's power of gamma.

    A matrix counts once, although each distribution of the weights is measured at it. The power is
    the mean over all matrices and distributions. Raises NoRows for fewer than three gammas.
    """
    count = len(tables["expansions"].drop_duplicates(["width", "replicate", "predicted"]))
    return (
        f"Lemma 7 predicts the change of ‖M‖² in all {count} matrices; its error falls"
        f" with the power {powers_left_over(tables).mean():.1f} of γ"
    )


def draw_lemma7(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw an illustration of Lemma 7: measured change of ‖M‖² against delta_F, and the remainder.

    Panel (a) has a dot for each matrix M and distribution of the weights, at the smallest gamma.
    Panel (b) shows the remainder against gamma. Returns the picture, and a table with a row for
    each matrix, distribution and gamma.
    """
    expansions = tables["expansions"]
    smallest = expansions[expansions["skip"] == expansions["skip"].min()]
    colors = shades(sorted(expansions["width"].unique()), *BY_WIDTH)
    picture, ((left, right),) = sheet(gap=0.9, right=0.95)

    def draw(axes: Axes, rows: pd.DataFrame, x: str, y: str, **options) -> list:
        """Draw a line for each width and distribution; return their ends."""
        ends = []
        for (width, law), points in rows.groupby(["width", "law"]):
            hollow = law == "uniform"
            look = Look(colors[width], "o", DASHED if hollow else "-", 1.8, hollow)
            look.line(axes, points[x], points[y], markersize=3.5 if hollow else 8, **options)
            if not hollow:
                ends.append((points[y].iloc[-1], f"d = {width}", look))
        return ends

    unit = smallest["width"] ** 2
    drawn = smallest.assign(x=smallest["predicted"] / unit, y=smallest["change"] / unit)
    draw(left, drawn, "x", "y", linestyle="", markeredgewidth=0.8)
    ROOT.line(left, *2 * [[drawn["x"].min(), drawn["x"].max()]], zorder=1)
    at = 0.6 * drawn["x"].min() + 0.4 * drawn["x"].max()
    ROOT.name(left, at - 0.15, at + 0.15, "equal", ha="right")
    with or_empty(right):
        rest = remainders(tables)
        right.set(xscale="log", yscale="log")
        ends = draw(right, rest, "skip", "remainder", markeredgewidth=0.8)
        gammas = np.array(sorted(rest["skip"].unique()))
        first = rest.loc[rest["skip"] == gammas[0], "remainder"].max()
        for power, text, at, away in (
            (1, "slope 1 (Lemma 7:\nat most O(γ))", 0.07, (10, -24)),
            (2, "slope 2", 0.06, (-8, 8)),
        ):
            promised = first * (gammas / gammas[0]) ** power
            style.guide(right, gammas, promised)
            QUIET.name_at(right, gammas, promised, text, at, away, size=style.SMALL)
        right.set_ylim(top=2.5 * max(promised[-1], rest["remainder"].max()))
        laws = {"Gaussian weights": Look(GREY, width=1.8, size=8)}
        laws |= {"uniform weights": Look(GREY, "o", DASHED, 1.8, True, 3.5)}
        style.key(right, laws, loc="upper left")
        ticks(right.xaxis, gammas)
        ticks(right.yaxis, [1e-4, 1e-3, 1e-2, 0.1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
        name_ends(right, ends)
    ROOT.note(left, 0.04, 0.9, "a dot: a matrix M = HHᵀ/N,\na white dot: uniform weights")
    promised = r"predicted by Lemma 7: $\delta_F(M)$ / d²"
    panel(left, "a", "change of ‖M‖² / (γd)², measured", promised)
    least = expansions["skip"].min()
    panel(right, "b", f"(error − error at γ = {least:g}) / (γd)²", "residual weight γ")
    columns = ["width", "law", "replicate", "skip", "predicted", "change", "change_se"]
    return picture, expansions[columns]


STAR = Look(style.VERMILION, "o")


def say_live(tables: Tables) -> str:
    """Return the headline: the number k* of surviving directions at the smallest and largest width.

    The networks have no skip connections. Raises NoRows if k* is unknown for all of them.
    """
    stars = select(crossings(tables), skip=inf).sort_values("width")
    first, last = stars.iloc[0], stars.iloc[-1]
    return (
        "The soft rank levels off when the input exceeds k* directions:"
        f" {first['crossing']:.1f} at width {first['width']:.0f},"
        f" {last['crossing']:.1f} at width {last['width']:.0f}"
    )


def draw_live(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the soft rank of deep layers by the rank of the input (a), and surviving directions (b).

    (b) shows the number of surviving directions against the width. Bands are two standard errors.
    Returns the picture, and a table with a row for each gamma, width and input rank. Raises NoRows
    if no input has rank two or more.
    """
    ranks = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    strongest = ranks["skip"].max()
    shown = ranks[(ranks["skip"] == strongest) & (ranks["input_rank"] > 1)]
    shown = nonempty(shown, "input of rank two or more")
    stars = crossings(tables)
    colors = shades(sorted(shown["width"].unique()), *BY_WIDTH)
    picture, ((left, right),) = sheet(gap=1.15)
    top = 1.35 * np.nanmax([4, shown["soft_rank"].max(), stars["crossing"].max()])
    for d, rows in shown.groupby("width"):
        look, k = Look(colors[d], "", width=2.6), rows["input_rank"]
        star = stars[(stars["width"] == d) & (stars["skip"] == strongest)]["crossing"]
        two = 2 * rows["soft_rank_se"]
        look.band(left, k, rows["soft_rank"] - two, rows["soft_rank"] + two)
        look.line(left, k, rows["soft_rank"])
        at = np.interp(star, k, rows["soft_rank"])
        STAR.line(left, star, at)
        for x, y in zip(star, at, strict=True):
            STAR.name(left, x, y, f"{x:.1f}", textcoords="offset points", xytext=(3, -12))
        look.name_at(left, k, rows["soft_rank"], f"d = {d}", k.max(), (5, 0))
    doubling(left.xaxis, left.yaxis, right.yaxis)
    left.set_xlim(1.8, 1.02 * k.max())
    for axes in (left, right):
        axes.set_ylim(1.8, top)
    ROOT.line(left, [2, top], [2, top], zorder=1, scalex=False)
    ROOT.name_at(left, [2, top], [2, top], "all k survive", (2 * top) ** 0.5, (-7, 6))
    STAR.note(left, 0.04, 0.9, "dots: k*, where\none more direction\nbegins to shrink")
    lines_by_gamma(right, stars, "crossing", TWO)
    key_of_gamma(right, stars, loc="upper left")
    name_power(right, shown["width"], 0.5, "√d", 40, (6, -10))
    panel(left, "a", "soft rank of deep layers", "rank k of the input")
    panel(right, "b", "surviving directions k*", "width d")
    columns = ["skip", "width", "input_rank", "soft_rank", "soft_rank_se", "exponent"]
    return picture, ranks[[*columns, "exponent_se"]]


FIGURES = [
    Drawing(
        "rank-fig3b",
        draw_fig3b,
        whose="as in the paper, no skips",
        findings=[Finding(say_apart, holds=["collinear-pulled-apart"])],
        marks="lines: medians, band: range",
        caption="(a) shows the ten largest singular values by layer, divided by the square root"
        " of the batch size N. (b) repeats (a) on a logarithmic axis. Networks have"
        " no skip connections. Lines are medians over the networks, darker for larger"
        " singular values; the band is the range of the largest singular value.",
    ),
    Drawing(
        "rank-lemma3",
        draw_lemma3,
        whose="as in the paper",
        findings=[
            Finding(say_moving, holds=["ratio-decays"], fails=["matrix-converges"]),
            Finding(say_collapse, holds=["ratio-decays"]),
        ],
        marks="lines: medians, bands: middle half",
        caption="(a) shows the ratio σ₂/σ₁ of the two largest singular values by layer, without"
        " batch norm and with skip connections. (b) shows by layer how far the matrix of"
        " activations, scaled to norm one, moves. Lines are medians, bands the middle"
        " half. Solid lines have Gaussian weights, thin dashed lines uniform weights."
        " Dotted lines have the rate predicted by the Lyapunov exponents.",
        shows={"law": ["gaussian", "uniform"]},
    ),
    Drawing(
        "rank-lemma7",
        draw_lemma7,
        whose="as in the paper",
        findings=[Finding(say_expansion, holds=["expansion", "remainder"])],
        marks="points in b: root mean squares",
        caption="(a) shows the measured against the predicted change at the smallest residual"
        " weight γ; dots are matrices with Gaussian or uniform weights. (b) shows against γ the"
        " root mean square error of the prediction, divided by (γd)², after its value at the"
        " smallest γ is subtracted. The dotted lines have slopes 1 and 2. Wider networks are"
        " darker, and white markers have uniform weights.",
        shows={"law": ["gaussian", "uniform"]},
    ),
    Drawing(
        "rank-live",
        draw_live,
        whose="our experiment",
        findings=[Finding(say_live, holds=["other-laws-below"])],
        marks="lines: means over the layers, bands (narrow): two standard errors",
        caption="(a) shows the soft rank of deep layers, averaged over the layers, against the"
        " rank k of the input, without skip connections. Bands are ± two standard"
        " errors. Dots mark how many directions of the input survive: each further"
        " direction shrinks from layer to layer. (b) shows the number of surviving"
        " directions against the width d.",
    ),
]
