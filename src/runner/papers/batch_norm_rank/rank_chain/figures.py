"""Draw the figures of study `rank_chain`: 3a, 3b, 8, Lemmas 3 and 7, surviving directions."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from runner.core import choices
from runner.papers.batch_norm_rank.looks import ROOT
from runner.papers.batch_norm_rank.rank_chain.tables import (
    averages,
    crossings,
    gamma,
    in_lemma_5,
    norm_bound,
    paper_skips,
    powers_left_over,
    powers_of_two,
    rank_bound,
    remainders,
    scaled_products,
)
from runner.results import style
from runner.results.captions import Caption
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.evidence import slopes
from runner.results.rows import Tables, nonempty, select, spread
from runner.results.style import (
    DASHED,
    GREY,
    QUIET,
    Look,
    level,
    name_ends,
    own_look,
    panel,
    rail,
    shades,
    sheet,
    ticks,
)

NUMBERS = ["law", "skip", "tau", "width", "layers", "regularity", "regularity_se", "frobenius"]
NUMBERS += ["frobenius_se", "soft_rank", "soft_rank_se", "soft_rank_sd"]
NUMBERS += ["rank_bound", "rank_bound_se", "rank_bound_sd"]
"""Columns of averages over depth in the table of a figure."""

SKIPS = {  # lines of 1 and infinity coincide, 0.5 is next to them
    inf: Look(style.BLUE, "", width=3.4),
    1.0: Look(style.NAVY, "o", "", hollow=True),
    0.5: Look(style.NAVY, "^", ""),
    0.1: Look(style.SKY, "D", DASHED),
}
"""Looks by gamma, in drawing order from bottom to top."""

SIZES = {1.0: 9, 0.5: 5}
"""Sizes of markers that overlap, by gamma."""

OTHER = Look(style.NAVY, "v", style.DOTTED, hollow=True)
"""Look of gammas that the paper does not use."""

TWO = {
    inf: Look(style.BLUE),
    1.0: Look(style.NAVY, hollow=True),
    0.1: Look(style.SKY, "D", DASHED, hollow=True),
}
"""Looks by gamma in pictures where at most two lines coincide."""

BRANCH = "γ: weight of the branch"
"""Note in pictures with lines by gamma."""

BY_WIDTH = ("#8cc9ee", style.BLUE, style.NAVY)
"""Colors by width, darker for wider networks."""


def over_layers(text: str) -> Caption:
    """Return a caption function that fills `{layers}` in `text` with "at least 10,000 layers".

    The number is the smallest number of layers in an average, rounded down to its first digit.
    """

    def say(tables: Tables) -> str:
        least = int(averages(tables)["layers"].min())
        round_number = least - least % 10 ** (len(str(least)) - 1)
        return text.format(layers=f"at least {round_number:,} layers")

    return say


def _doubling(*axes: Axis) -> None:
    """Set logarithmic scales with a tick at each power of two."""
    for axis in axes:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_major_locator(LogLocator(2, numticks=99))
        axis.set_major_formatter("{x:,g}")


def _by_gamma(axes: Axes, rows: pd.DataFrame, column: str, looks: dict[float, Look]) -> None:
    """Draw a column against the width, one line for each gamma, with smaller gammas on top."""
    rows = rows.sort_values(["skip", "width"], ascending=[False, True])
    for skip, points in rows.groupby("skip", sort=False):
        look, size = looks.get(skip, OTHER), SIZES.get(skip, 7)
        look.line(axes, points["width"], points[column], markersize=size)
    _doubling(axes.xaxis)


def _within(at: float, widths: np.ndarray | pd.Series) -> float:
    """Return the width at which a line's name is written, within the range of the widths."""
    return float(np.clip(at, widths.min(), max(widths.min(), widths.max() / 1.6)))


def _root(axes: Axes, widths: pd.Series, power: float, text: str, at: float, away: tuple) -> None:
    """Draw a power of d with its name."""
    d = np.array(sorted(set(widths)), float)
    ROOT.line(axes, d, d**power, zorder=1)
    ROOT.name_at(axes, d, d**power, text, _within(at, d), away)


def _name(axes: Axes, rows: pd.DataFrame, column: str, look: Look, text: str, at: float,
          away: tuple) -> None:  # fmt: skip
    """Write a name at a line against the width, if the line has points."""
    rows = rows.dropna(subset=column)
    if len(rows):
        look.name_at(axes, rows["width"], rows[column], text, _within(at, rows["width"]), away)


def _key(axes: Axes, rows: pd.DataFrame, y: float) -> None:
    """Write from the height y downwards which line of TWO has which gamma, and the meaning of γ."""
    skips = sorted(set(rows["skip"]), reverse=True)
    for line, skip in enumerate(skips):
        words = f"{'solid' if skip >= 1 else 'broken'}: {gamma(skip)}"
        words += " (no skip)" * (skip == inf)
        TWO.get(skip, OTHER).note(axes, 0.04, y - 0.07 * line, words)
    QUIET.note(axes, 0.04, y - 0.07 * len(skips), BRANCH)


def _signs(axes: Axes, names: dict[str, Look], sizes: dict[str, float], **place) -> None:
    """Write a key with the sign of each look, as it is drawn, before its name.

    sizes: sizes of markers by name, 7 by default. place: options for `Axes.legend`.
    """
    for name, look in names.items():
        look.line(axes, [], [], label=name, markersize=sizes.get(name, 7))
    options = {"fontsize": style.SMALL, "borderaxespad": 0.2, "handlelength": 1.8} | place
    key = axes.legend(**options)
    for text, look in zip(key.get_texts(), names.values(), strict=True):
        text.set_color(look.ink)


def _exponents(rows: pd.DataFrame, by: list[str], x: str, y: str) -> pd.Series:
    """Return for each group the slope of y against x on logarithmic axes.

    by: the columns of a group. Raises NoRows if no group has two points.
    """
    groups = rows.assign(replicate=rows.groupby(by).ngroup())
    return nonempty(slopes(groups, x, y, log=True).dropna(), f"two of {x}")


def say_growth(tables: Tables) -> str:
    """Return the headline of figure 3a: the range of the exponents of the soft rank in the width.

    The exponents are fitted for each gamma. Raises NoRows if no gamma has two widths that are
    powers of two.
    """
    rows = powers_of_two(averages(tables))
    powers = _exponents(rows, ["skip"], "width", "soft_rank")
    return (
        "With batch norm the soft rank grows faster than √d, with exponents from"
        f" {powers.min():.2f} to {powers.max():.2f} over widths {rows['width'].min()} to"
        f" {rows['width'].max()}"
    )


def draw_fig3a(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 3a: the mean soft rank (a), and the same divided by √d (b), against the width d.

    Each gamma has a line. The band is one standard deviation over the layers. Returns the picture
    and the averages over depth. Raises NoRows without a width that is a power of two.
    """
    metrics = averages(tables)
    shown = nonempty(powers_of_two(metrics), "width that is a power of two")
    shown = shown.assign(ratio=shown["soft_rank"] / shown["width"] ** 0.5)
    picture, ((left, right),) = sheet(gap=0.75)
    without, near = shown[shown["skip"] == inf], SKIPS[inf]
    for axes, column, power in ((left, "soft_rank", 0), (right, "ratio", 0.5)):
        _by_gamma(axes, shown, column, SKIPS)
        sd = without["soft_rank_sd"] / without["width"] ** power
        near.band(axes, without["width"], without[column] - sd, without[column] + sd)
    _doubling(left.yaxis)
    _root(left, shown["width"], 0.5, "√d, slope 0.5", 60, (10, -12))
    _root(right, shown["width"], 0, "1 (slope 0.5)", 100, (0, -11))
    with or_empty(left):
        powers = _exponents(shown, ["skip"], "width", "soft_rank")
        slopes_of = f"every γ: slopes\n{powers.min():.2f} to {powers.max():.2f}"
        _name(left, without, "soft_rank", near, slopes_of, 60, (-9, 12))
    skips = sorted(set(shown["skip"]), reverse=True)
    words = {skip: f"γ = {skip:g}" for skip in skips} | {inf: "no skip (γ = ∞), with band"}
    looks = {words[skip]: SKIPS.get(skip, OTHER) for skip in skips}
    sizes = {words[skip]: SIZES.get(skip, 7) for skip in skips}
    _signs(right, looks, sizes, loc="upper left")
    QUIET.note(left, 0.45, 0.08, BRANCH)
    panel(left, "a", "soft rank, mean over the layers", "width d")
    panel(right, "b", "soft rank / √d", "width d")
    return picture, metrics[NUMBERS]


LAWS = {
    "gaussian": Look(style.BLUE, "", width=3.4),
    "uniform": Look(style.NAVY, "o", hollow=True),
    "rademacher": Look(style.NAVY, "^", DASHED),
}
"""Looks by the distribution of the weights, without skips."""

SMALL_SKIPS = {law: replace(look, hue=style.SKY) for law, look in LAWS.items()}
SMALL_SKIPS["gaussian"] = Look(style.SKY, "D", DASHED)
"""Looks by the distribution of the weights, for γ = 1 / (8 d) and 1 / (16 d)."""


ASIDE = {"rademacher": 0.92, "uniform": 1.08}
"""Positions of points that would cover one another, as multiples of their width."""


def _relative_to_gaussian(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return soft ranks, divided by the soft rank of Gaussian weights without skips at the same
    width.

    Raises NoRows if the networks with Gaussian weights were not run.
    """
    plain = select(metrics, skip=inf, law="gaussian").set_index("width")["soft_rank"]
    ranks = metrics[["soft_rank", "soft_rank_se"]]
    return metrics.assign(**ranks.div(metrics["width"].map(plain), axis=0))


def _by_law(axes: Axes, metrics: pd.DataFrame, apart: bool = False) -> None:
    """Draw soft ranks against the width for each distribution, with bands of two standard errors.

    Networks without skips and networks with a small gamma have separate lines, means over gammas.
    apart: whether single points with a small gamma are drawn next to their width.
    """
    for (is_small, law), rows in metrics.groupby([in_lemma_5(metrics), "law"]):
        by_width, looks = rows.groupby("width"), SMALL_SKIPS if is_small else LAWS
        look = looks.get(law) or own_look("law", law)
        mean = by_width["soft_rank"].mean()
        if apart and is_small and len(mean) == 1:
            look, mean.index = replace(look, dashes=""), mean.index * ASIDE.get(law, 1)
        two = by_width["soft_rank_se"].apply(
            lambda errors: 2 * np.hypot.reduce(errors) / len(errors)
        )
        look.band(axes, mean.index, mean - two, mean + two)
        look.line(axes, mean.index, mean)
        if law not in LAWS and not is_small:
            look.name(axes, mean.index[-1], mean.iloc[-1], law, ha="right", va="bottom")
    _doubling(axes.xaxis)


def say_laws(tables: Tables) -> str:
    """Return the headline: soft rank / bound of Theorem 14, and the effect of the distribution.

    Its numbers are the smallest ratio, and the largest relative difference to Gaussian weights.
    Raises NoRows if Gaussian weights without skip connections were not run.
    """
    metrics = averages(tables)
    plain = select(_relative_to_gaussian(metrics), skip=inf)
    bound = rank_bound(metrics, metrics["tau"])
    return (
        f"The soft rank is more than {int((metrics['soft_rank'] / bound).min())} times the bound of"
        " Theorem 14; without skip connections the distribution of the weights changes the rank by"
        f" at most {100 * (plain['soft_rank'] - 1).abs().max():.0f} %"
    )


def draw_laws(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw against the width the soft rank with its bound (a), and the relative soft rank (b).

    (b) divides by the soft rank of Gaussian weights without skip connections. Each distribution of
    the weights has a line. Bands are two standard errors. Returns the picture and the averages over
    depth.
    """
    metrics = averages(tables)
    metrics = metrics.assign(bound=rank_bound(metrics, metrics["tau"])).sort_values("width")
    without = metrics[metrics["skip"] == inf]
    picture, ((left, right),) = sheet(gap=1.3)
    _by_law(left, metrics)
    bound = without.groupby("width", as_index=False)["bound"].max()
    QUIET.line(left, bound["width"], bound["bound"])
    _doubling(left.yaxis)
    times = int((metrics["soft_rank"] / metrics["bound"]).min())
    if len(without):
        least = without.groupby("width")["soft_rank"].min()
        d = least.index[len(least) // 3]
        ends = float(bound.set_index("width")["bound"][d]), float(least[d])
        left.annotate(
            "", (d, ends[1]), (d, ends[0]), arrowprops={"arrowstyle": "<->", "color": GREY}
        )
        spot = {"xytext": (6, 0), "textcoords": "offset points", "ha": "left"}
        QUIET.name(left, d, (ends[0] * ends[1]) ** 0.5, f"× {times} or more", **spot)
    _root(left, metrics["width"], 0.5, "√d", 40, (6, -9))
    _name(left, bound, "bound", QUIET, "bound of\nTheorem 14", 24, (6, -13))
    left.set_ylim(top=1.5 * metrics["soft_rank"].max())
    if in_lemma_5(metrics).any():
        SMALL_SKIPS["gaussian"].note(left, 0.04, 0.94, "light: with skips")
    LAWS["uniform"].note(left, 0.04, 0.88, "dark: without skips")
    QUIET.note(left, 0.04, 0.82, "distributions overlap")
    with or_empty(right):
        relative = _relative_to_gaussian(metrics)
        _by_law(right, relative, apart=True)
        right.set_ylim(0.985, None)
        plain, small = relative[relative["skip"] == inf], relative[in_lemma_5(relative)]
        if len(small):
            words = "with skips: weight γ of the branch\n1/(8d) or 1/(16d), mean of both"
            SMALL_SKIPS["gaussian"].note(right, 0.99, 0.93, words, ha="right")
            names = {"gaussian": "Gaussian", "rademacher": "±1", "uniform": "uniform"}
            looks = {}
            for law, name in names.items():
                widths = small.loc[small["law"] == law, "width"].unique()
                look, words = SMALL_SKIPS[law], name
                if len(widths) == 1:
                    look, words = replace(look, dashes=""), f"{name}, d = {widths[0]}"
                looks |= {words: look} if len(widths) else {}
            _signs(right, looks, {}, loc="upper right", bbox_to_anchor=(1, 0.88))
        for rows, looks, law, text, at, away in (
            (plain, LAWS, "gaussian", "Gaussian", 40, (0, -11)),
            (plain, LAWS, "uniform", "uniform", 11, (0, -11)),
            (plain, LAWS, "rademacher", "±1", 17, (6, 9)),
        ):
            _name(right, rows[rows["law"] == law], "soft_rank", looks[law], text, at, away)
    panel(left, "a", "soft rank, mean over the layers", "width d")
    panel(right, "b", "soft rank, relative to Gaussian", "width d")
    right.set_ylabel("divided by the soft rank of\nGaussian weights without skips")
    return picture, metrics[NUMBERS]


OF_TAU = {0.1: Look(style.SKY, "D"), 0.5: Look(style.BLUE, "o"), 0.9: Look(style.NAVY, "s")}
ONE_SIGN = Look(style.GREEN, "v", DASHED)


def say_needed(tables: Tables) -> str:
    """Return the headline: with weights of mean zero, batch norm keeps the rank at every τ."""
    return "With weights of mean zero batch norm keeps the rank at every tested τ"


def say_also_without(tables: Tables) -> str:
    """Return the headline of `say_needed`, with residual weights that need no batch norm.

    With these weights γ networks without batch norm do not collapse to rank one.
    """
    scaled = [name for name in scaled_products(tables)["branch"].unique() if "L" in name]
    return (
        f"{say_needed(tables)}; without it, residual weights of {' or '.join(sorted(scaled))}"
        " prevent the collapse to rank one"
    )


def draw_assumptions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the soft rank / its bound (a), r (b), and σ₂ / σ₁ without batch norm (c).

    (a) has a line for each threshold τ, against the width. (b) compares weights of both signs and
    of one sign. (c) has a line for each residual weight, against the depth. Returns the picture and
    the averages over depth. Raises NoRows if a distribution was not run.
    """
    metrics = averages(tables)
    rest, one = (select(metrics, law=law) for law in ("gaussian", "asymmetric"))
    rest, one = (rows[rows["skip"] == rows["skip"].max()] for rows in (rest, one))
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.8, right=0.95)
    left.set_yscale("log")
    for tau, rows in rest.groupby("tau"):
        look, times = OF_TAU.get(tau, OTHER), rows["soft_rank"] / rank_bound(rows, tau)
        look.line(left, rows["width"], times)
        _name(left, rows.assign(times=times), "times", look, f"τ = {tau:g}", 30, (0, 10))
    level(left, 1, "the bound")
    left.set_ylim(bottom=0.6)
    left.yaxis.set_major_formatter("{x:,g}")
    for text, look, rows, at, away in (
        (
            "weights of\nmean zero",
            OF_TAU[0.5],
            rest[rest["tau"] == rest["tau"].median()],
            36,
            (9, -16),
        ),
        ("weights of one sign", ONE_SIGN, one, 8, (1, 11)),
    ):
        look.line(middle, rows["width"], rows["rank_bound"])
        _name(middle, rows, "rank_bound", look, text, at, away)
    _doubling(left.xaxis, middle.xaxis, middle.yaxis)
    right.set_xscale("log")
    placed, ends = rail(right, 1e-5, 2), []
    products = scaled_products(tables).groupby(["branch", "L"], as_index=False)["log_ratio"]
    for branch, rows in products.median().groupby("branch"):
        color, marker = (style.RUST, "D") if "L" in branch else (style.ORANGE, "s")
        look = Look(color, marker, hollow=branch.startswith("4 / "))
        ratio = placed(np.exp(rows["log_ratio"]))
        look.line(right, rows["L"], ratio)
        ends.append((ratio[-1], f"γ = {branch}", look))
    ticks(right.xaxis, sorted(set(scaled_products(tables)["L"])))
    ticks(right.yaxis, [1, 1e-2, 1e-4], ["1", "0.01", "0.0001"])
    name_ends(right, ends)
    QUIET.note(left, 0.04, 0.65, "τ: threshold of\nthe soft rank")
    QUIET.note(right, 0.42, 0.6, "γ: weight of\nthe branch")
    panel(left, "a", "soft rank / bound", "width d")
    panel(middle, "b", "r, lower bound of rank", "width d")
    panel(right, "c", "σ₂/σ₁, no batch norm", "depth L")
    return picture, metrics[NUMBERS]


def say_below(tables: Tables) -> str:
    """Return the headline: r stays below √d up to the largest width d, with the last r / √d.

    r is the lower bound (4) of the rank. The number is of networks without skip connections. The
    headline is empty unless r / √d is below 1 at every width and γ. Raises NoRows if no network
    without skip connections was run.
    """
    metrics = averages(tables)
    over = metrics.assign(over=metrics["rank_bound"] / metrics["width"] ** 0.5)
    last = select(over, skip=inf).sort_values("width").iloc[-1]
    if not (over["over"] < 1).all():
        return ""
    widest = f"{over['width'].max():,}"
    return f"The bound r stays below √d up to d = {widest}, where it is {last['over']:.2f} √d"


def draw_wide(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw soft rank and r divided by √d (a), and their exponents in d (b), against the width d.

    An exponent is the slope between two neighboring widths on logarithmic axes. Returns the picture
    and the averages over depth. Raises NoRows if no network without skip connections was run.
    """
    metrics, ranks = averages(tables), ["soft_rank", "rank_bound"]
    over = metrics.assign(**metrics[ranks].div(metrics["width"] ** 0.5, axis=0))
    logs = np.log(metrics[["width", *ranks]])
    steps = logs.groupby(metrics["skip"]).diff()
    middle = np.exp(logs["width"] - steps["width"] / 2)
    between = metrics.assign(**steps[ranks].div(steps["width"], axis=0), width=middle)
    picture, ((left, right),) = sheet(gap=0.75)
    ends = select(over, skip=inf).sort_values("width")["rank_bound"]
    ends_at = f"r ends at {ends.iloc[-1]:.2f} √d"
    for axes, rows, height, places in (
        (left, over, 1, {"soft rank": (181, (14, -12)), ends_at: (400, (0, -15))}),
        (right, between, 0.5, {"soft rank": (256, (9, 8)), "r": (256, (6, 10))}),
    ):
        for column, (text, position) in zip(ranks, places.items(), strict=True):
            _by_gamma(axes, rows, column, TWO)
            _name(axes, rows[rows["skip"] == inf], column, TWO[inf], text, *position)
        axes.axhline(height, color=ROOT.color, linestyle=DASHED, linewidth=ROOT.width, zorder=1)
    _key(left, over, 0.42)
    ROOT.name(left, 0.98, 1.03, "√d", transform=left.get_yaxis_transform(), ha="right")
    left.set_ylim(bottom=left.get_ylim()[0] - 0.05)
    ROOT.name(right, 0.98, 0.504, "1/2", transform=right.get_yaxis_transform(), ha="right")
    panel(left, "a", "soft rank and its bound r, divided by √d", "width d")
    panel(right, "b", "exponent between two widths", "width d")
    return picture, metrics[NUMBERS]


def say_regular(tables: Tables) -> str:
    """Return the headline of figures 8 and 9: the largest mean of ‖M‖², in percent of its bound.

    Lemma 13 has the bound.
    """
    metrics = averages(tables)
    metrics = metrics[metrics["skip"].isin(paper_skips(metrics))]
    most = np.ceil(100 * (metrics["frobenius"] / norm_bound(metrics)).max())
    return f"‖M‖² grows no faster than d√d and stays below {most:.0f} % of Lemma 13's bound"


def say_more_regular(tables: Tables) -> str:
    """Return the headline of `say_regular`, and that the regularity constant falls with d."""
    return f"The regularity constant α falls with d; {say_regular(tables)}"


def draw_fig8(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figures 8 and 9: regularity constant alpha (a) and mean of ‖M‖² (b), against the width.

    The bound of Lemma 13 is drawn, too. Returns the picture and the averages over depth.
    """
    metrics = averages(tables)
    skips = paper_skips(metrics)
    metrics = metrics[metrics["skip"].isin(skips)].assign(bound=norm_bound)
    picture, ((left, right),) = sheet(gap=0.85)
    right.set_yscale("log")
    _by_gamma(left, metrics, "regularity", TWO)
    level(left, 0.9, "in the paper below 0.9 for d > 10", at=0.26)
    _by_gamma(right, metrics, "frobenius", TWO)
    bound = metrics[metrics["skip"] == skips[0]]
    QUIET.line(right, bound["width"], bound["bound"], zorder=1)
    most = np.ceil(100 * (metrics["frobenius"] / metrics["bound"]).max())
    words = f"bound of Lemma 13\n(‖M‖²: at most\n{most:.0f} % of it)"
    _name(right, bound, "bound", QUIET, words, 60, (-8, 18))
    _root(right, metrics["width"], 1.5, "dashed: d$^{1.5}$", 40, (9, -12))
    for skip, at, away in zip(skips, (9, 34), ((9, 6), (-8, -8)), strict=False):
        rows, look = metrics[metrics["skip"] == skip], TWO.get(skip, OTHER)
        _name(left, rows, "regularity", look, gamma(skip), at, away)
    QUIET.note(left, 0.04, 0.06, BRANCH)
    panel(left, "a", "regularity constant α", "width d")
    panel(right, "b", "‖M‖², M = HHᵀ/N, mean", "width d")
    return picture, metrics[NUMBERS]


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
    names, ends = [], {}
    for index, rows in values.groupby("index"):
        look = Look(colors[index], "", width=3.4 if index == 1 else 2.0)
        if index == 1:
            look.band(left, rows["layer"], rows["singular_value_low"], rows["singular_value_high"])
        for axes in (left, right):
            look.line(axes, rows["layer"], rows["singular_value"], zorder=4 - 0.1 * index)
        end = rows["singular_value"].iloc[-1]
        ends[index] = end
        if index in (1, 4, 8, 9, 10):
            names.append((end, f"i = {index}" if index != 4 else "i = 2 … 7", look))
    for axes in (left, right):
        axes.set_xlim(0, max(1, values["layer"].max()))
        level(axes, SOFT)
    left.set_ylim(0, None)
    ticks(right.yaxis, [0.01, 0.1, 1])
    if {2, 7} <= set(ends):
        bracket = {"transform": right.get_yaxis_transform(), "clip_on": False, "linewidth": 1.6}
        right.plot([1.015, 1.015], [ends[2], ends[7]], color=colors[4], **bracket)
    rank, layer = _soft_ranks(shown)
    words = (
        "dotted (a, b): √½, threshold\nof the soft rank: the number\nof values above it. Its mean"
    )
    QUIET.note(left, 0.36, 0.86, f"{words}\nat layer {layer} is {rank[layer]:.1f}")
    name_ends(right, names)
    panel(left, "a", "ten largest singular values / √N", "layer")
    panel(right, "b", "singular values / √N, log axis", "layer")
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
        "Without batch norm, skip connections do not save the rank: σ₂/σ₁ falls tenfold in"
        f" {-end * np.log(10) / last:.0f} layers (γ = {strong:g})"
    )


def say_moving(tables: Tables) -> str:
    """Return the headline of `say_collapse`, and that the matrix of activations does not converge.

    Raises NoRows if no network has Gaussian weights.
    """
    return f"{say_collapse(tables)}, and the matrix of activations keeps moving"


def draw_lemma3(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw an illustration of Lemma 3 by layer: σ₂/σ₁ without normalization (a), and steps (b).

    A step is the distance that the matrix of activations, scaled to norm one, moves in one layer.
    Lines are medians, bands the middle half. Returns the picture, and a table with medians, ranges
    and quartiles for each gamma, distribution and layer.
    """
    products = tables["products"].assign(ratio=lambda rows: np.exp(rows["log_ratio"]))
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
                names.append((rows[column].iloc[-1], gamma(skip), look))
            else:
                look = replace(look, width=1.4, dashes=DASHED)
            look.line(axes, rows["layer"], rows[column], zorder=2 + (law != "gaussian"))
        axes.set(xlim=(0, end), ylim=height)
        name_ends(axes, names)
    for gap in products.groupby("skip")["gap"].first():
        GAP.line(left, [0, end], [1, np.exp(-gap * end)], zorder=4)
    key = "γ: weight of the branch\ndotted: rate predicted\nby Lyapunov exponents"
    key += "\nthick: Gaussian weights\nthin: uniform weights"
    GAP.note(left, 0.04, 0.18, key, path_effects=None)
    panel(left, "a", "σ₂/σ₁ of the activations H", "layer")
    panel(right, "b", "change of H / ‖H‖ in a layer", "layer")
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
    picture, ((left, right),) = sheet(gap=1.2, right=0.95)

    def draw(axes: Axes, rows: pd.DataFrame, x: str, y: str, **options) -> list:
        """Draw a line for each width and distribution; return their names in the order of d."""
        ends = []
        for (width, law), points in rows.groupby(["width", "law"]):
            hollow = law == "uniform"
            look = Look(colors[width], "o", DASHED if hollow else "-", 1.8, hollow)
            look.line(axes, points[x], points[y], markersize=3.5 if hollow else 8, **options)
            if not hollow:
                ends.append((points[y].iloc[-1], f"d = {width}", look))
        return [(y, *end[1:]) for y, end in zip(sorted(y for y, *_ in ends), ends, strict=True)]

    unit = smallest["width"] ** 2
    drawn = smallest.assign(x=smallest["predicted"] / unit, y=smallest["change"] / unit)
    draw(left, drawn, "x", "y", linestyle="", markeredgewidth=0.8)
    ROOT.line(left, *2 * [[drawn["x"].min(), drawn["x"].max()]], zorder=1)
    ROOT.name(left, drawn["x"].median() - 0.15, drawn["x"].median() + 0.15, "equal", ha="right")
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
        QUIET.note(right, 0.04, 0.93, "solid: Gaussian weights\nbroken: uniform")
        ticks(right.xaxis, gammas)
        ticks(right.yaxis, [1e-4, 1e-3, 1e-2, 0.1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
        name_ends(right, ends)
    words = "a dot: a matrix M = HHᵀ/N\nwhite dot: the same M,\nuniform weights\nd: width"
    ROOT.note(left, 0.04, 0.87, words)
    promised = r"predicted by Lemma 7: $\delta_F(M)$ / d²"
    panel(left, "a", "change of ‖M‖² / (γd)², measured", promised)
    least = expansions["skip"].min()
    right.set_ylabel(f"error − error at γ = {least:g}")
    panel(right, "b", "error of the prediction / (γd)²", "weight γ of the branch")
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
        "The soft rank levels off once the input has more than k* directions:"
        f" k* = {first['crossing']:.1f} at width {first['width']:.0f},"
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
        STAR.line(left, star, np.interp(star, k, rows["soft_rank"]))
        look.name_at(left, k, rows["soft_rank"], f"d = {d}", k.max(), (5, 0))
    _doubling(left.xaxis, left.yaxis, right.yaxis)
    left.set_xlim(1.8, 1.02 * k.max())
    for axes in (left, right):
        axes.set_ylim(1.8, top)
    ROOT.line(left, [2, top], [2, top], zorder=1, scalex=False)
    ROOT.name_at(left, [2, top], [2, top], "all k survive", 0.8 * top, (-7, 6))
    STAR.note(left, 0.04, 0.9, "dots: k*, where\none more direction\nbegins to shrink")
    _by_gamma(right, stars, "crossing", TWO)
    _key(right, stars, 0.94)
    _root(right, shown["width"], 0.5, "√d", 40, (6, -10))
    panel(left, "a", "soft rank of deep layers", "rank k of the input")
    panel(right, "b", "surviving directions k*", "width d")
    columns = ["skip", "width", "input_rank", "soft_rank", "soft_rank_se", "exponent"]
    return picture, ranks[[*columns, "exponent_se"]]


OVERVIEW = {
    "metrics": draw_fig3a,
    "spectrum": draw_fig3b,
    "products": draw_lemma3,
    "expansions": draw_lemma7,
    "input_ranks": draw_live,
}
"""Function that draws the preview, by the table that a run has."""


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run with the figure of its table.

    Returns the picture and the drawn numbers. A table of more than 40 rows is reduced to 20 to 30
    evenly spaced rows.
    """
    picture, drawn = next(draw for table, draw in OVERVIEW.items() if table in tables)(tables)
    return picture, drawn if len(drawn) <= 40 else drawn.iloc[:: len(drawn) // 20]


STATISTIC = "mean"

HEADLINE = ["soft_rank", "rank_bound", "log_ratio", "change"]

LOOKS = LAWS
"""Looks of the distributions of weights, by name."""

FIGURES = [
    Drawing(
        "rank-fig3a",
        draw_fig3a,
        whose="as in the paper",
        findings=[Finding(say_growth, holds=["soft-rank-growth", "r-growth"])],
        marks="band: standard deviation over the layers",
        caption=over_layers(
            "(a) shows the soft rank, averaged over {layers}, against the width d; the dashed line"
            " is √d. (b) shows the soft rank divided by √d, against d."
            " γ is the weight of the random branch (∞: no skip connection)."
            " The band is one standard deviation over the layers of networks without skip"
            " connections; errors of the means are smaller than the markers."
        ),
    ),
    Drawing(
        "rank-laws",
        draw_laws,
        whose="our experiment",
        findings=[Finding(say_laws, holds=["soft-rank-bound"])],
        marks="points: means over the layers, bands: two standard errors",
        caption=over_layers(
            "(a) shows the mean soft rank and the bound of Theorem 14 against the width d. (b)"
            " shows the soft rank divided by the soft rank of Gaussian weights without skip"
            " connections. Means are over {layers}; bands are ± two standard errors. Dark networks"
            " have no skip connections, light networks the small residual weights γ of Lemma 5."
        ),
        shows={"law": choices.LAWS.only("gaussian", "uniform", "rademacher")},
    ),
    Drawing(
        "rank-assumptions",
        draw_assumptions,
        whose="our experiment",
        findings=[
            Finding(
                say_also_without,
                holds=["soft-rank-bound", "one-sign-collapses", "scaled-branch-keeps-rank"],
            ),
            Finding(say_needed, holds=["soft-rank-bound", "one-sign-collapses"]),
        ],
        marks="points: means over the layers, in c medians",
        caption="(a) shows the soft rank without skip connections, divided by the bound of"
        " Theorem 14, for three thresholds τ. (b) shows the rank's lower bound r for weights of"
        " mean zero and for positive weights. (c) shows the ratio of the two largest singular"
        " values by depth, without batch norm (below 0.00001: at ≈ 0). γ is the residual weight.",
        shows={"law": ["gaussian", "asymmetric"]},
    ),
    Drawing(
        "rank-wide",
        draw_wide,
        whose="our experiment",
        findings=[Finding(say_below, holds=["soft-rank-growth"])],
        marks="points: means over the layers",
        caption=over_layers(
            "(a) shows the soft rank and its lower bound r, averaged over {layers} and divided by"
            " √d, against the width d. (b) shows the exponents of both between neighboring"
            " widths; the dashed line is 1/2. γ is the residual weight (∞: no skip connection)."
            " Errors of the means are smaller than the markers."
        ),
    ),
    Drawing(
        "rank-fig8",
        draw_fig8,
        whose="as in the paper",
        findings=[
            Finding(say_more_regular, holds=["norm-bound", "norm-growth", "regularity-falls"]),
            Finding(say_regular, holds=["norm-bound", "norm-growth"]),
        ],
        marks="points: means over the layers",
        caption=over_layers(
            "(a) shows α (figure 8), (b) the mean of ‖M‖² (figure 9),"
            " against the width d. The dashed line is d^1.5, the dotted line in (b) Lemma 13's"
            " bound at γ = 1. Points are means over {layers}; standard errors are smaller than the"
            " markers. γ is the residual weight (circles: 1, diamonds: 0.1)."
        ),
    ),
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
        " half. Solid lines have Gaussian weights, thin broken lines uniform weights."
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
        " weight γ; dots are matrices with Gaussian or uniform weights. (b) shows the root mean"
        " square error of the prediction, divided by (γd)² and minus its value at the smallest γ"
        " (not drawn), against γ. Dotted: slopes 1 and 2. Wider networks are darker, white"
        " markers have uniform weights.",
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
