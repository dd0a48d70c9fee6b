"""Drawings of study `rank_chain`: Figures 3a, 3b, 8, Lemmas 3 and 7, live directions."""

from dataclasses import replace
from math import inf, isinf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from runner.papers.batch_norm_rank.looks import ROOT
from runner.papers.batch_norm_rank.rank_chain.tables import (
    averages,
    crossings,
    gamma,
    in_lemma_5,
    live_directions,
    norm_bound,
    paper_skips,
    power_law,
    powers_of_two,
    rank_bound,
    rank_bound_at_own,
    remainders,
    scaled_products,
)
from runner.results.captions import Said
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.style import (
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    INK,
    NAVY,
    ORANGE,
    QUIET,
    RUST,
    SKY,
    SMALL,
    VERMILION,
    Look,
    guide,
    level,
    name_ends,
    panel,
    shades,
    sheet,
    ticks,
)

RANKS = [
    "soft_rank",
    "soft_rank_se",
    "soft_rank_sd",
    "rank_bound",
    "rank_bound_se",
    "rank_bound_sd",
]

SKIPS = {  # 1 and infinity lie on each other, 0.5 next to them
    inf: Look(BLUE, "", width=3.4),
    0.5: Look(NAVY, "^", "", hollow=True),
    1.0: Look(NAVY, "o", ""),
    0.1: Look(SKY, "D", DASHED),
}
"""By gamma, below each other in this order."""

SIZES = {0.5: 9, 1.0: 5}
"""Of markers, one within the other."""

OTHER = Look(NAVY, "v", DOTTED, hollow=True)
"""Of a gamma that is not the paper's."""

TWO = {inf: Look(BLUE), 1.0: Look(NAVY, hollow=True), 0.1: Look(SKY, "D", DASHED, hollow=True)}
"""Where no three of them coincide."""

BY_WIDTH = ("#8cc9ee", BLUE, NAVY)
"""The wider, the darker."""


def over_layers(text: str) -> Said:
    """A caption that says, at `{layers}`, how many layers were averaged over."""

    def say(tables: Tables) -> str:
        return text.format(layers=_layers(averages(tables)))

    return say


def _layers(metrics: pd.DataFrame) -> str:
    counts = metrics["layers"]
    ends = dict.fromkeys(f"{end:,}" for end in (counts.min(), counts.max()))
    return f"{' to '.join(ends)} layers"


def _powers(rows: pd.DataFrame, column: str) -> list[float]:
    """The fitted powers of d, gamma by gamma. Raises NoRows where there are none."""
    fits = [power_law(of["width"], of[column])[0] for _, of in rows.groupby("skip")]
    return nonempty(pd.Series(fits).dropna(), "fitted power").tolist()


def _width_axis(axes: Axes, widths: pd.Series) -> None:
    """Logarithmic, with a tick at each power of two."""
    ends = [max(widths.min(), 1), max(widths.max(), 2)]
    axes.set(xscale="log", xlim=(0.88 * ends[0], 1.14 * ends[1]))
    ticks(axes.xaxis, sorted(set(powers_of_two(widths.to_frame("width"))["width"])) or ends)


def _name_by(axes: Axes, rows: pd.DataFrame, column: str, look: Look, text: str, at: float,
             away=(0.0, 10.0)) -> None:  # fmt: skip
    """A name at a line against the width, where it has points."""
    rows = rows.dropna(subset=column)
    if len(rows):
        look.name_at(axes, rows["width"], rows[column], text, at, away)


def say_growth(tables: Tables) -> str:
    """The fitted powers of the width."""
    powers = _powers(powers_of_two(averages(tables)), "soft_rank")
    return (
        f"The rank of batch-normalised chains grows as the power {min(powers):.2f} to"
        f" {max(powers):.2f} of the width: faster than the √d of Theorem 2, at every strength γ"
    )


def draw_fig3a(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3a: the soft rank against d, and over the root of d."""
    metrics = averages(tables)
    shown = powers_of_two(metrics)
    shown = (shown if len(shown) else metrics).sort_values("width")
    picture, ((left, right),) = sheet(gap=0.75)
    left.set_yscale("log")
    for axes, power in ((left, 0), (right, 0.5)):
        for skip in sorted(
            set(shown["skip"]), key=lambda each: list({**SKIPS, each: 0}).index(each)
        ):
            rows, look = shown[shown["skip"] == skip], SKIPS.get(skip, OTHER)
            unit = rows["width"] ** power
            if isinf(skip):
                low, high = (rows["soft_rank"] + s * rows["soft_rank_sd"] for s in (-1, 1))
                look.band(axes, rows["width"], low / unit, high / unit)
            look.line(axes, rows["width"], rows["soft_rank"] / unit, markersize=SIZES.get(skip, 7))
        d = np.array([shown["width"].min(), shown["width"].max()], float)
        ROOT.line(axes, d, d ** (0.5 - power), zorder=1)
        _width_axis(axes, shown["width"])
        ROOT.name_at(axes, d, d ** (0.5 - power), "√d", 100, (8, -9) if power == 0 else (0, -11))
    ticks(left.yaxis, [2**n for n in range(1, 12) if 2**n <= 2 * shown["soft_rank"].max()])
    ticks(right.yaxis, [0.8, 1, 1.2, 1.4, 1.6])
    panel(left, "a", f"soft rank, mean over {_rounded(shown)} layers", "width d")
    panel(right, "b", "the same, over √d", "width d")
    near, far = SKIPS[inf], SKIPS[0.1]
    ratio = shown.assign(ratio=shown["soft_rank"] / shown["width"] ** 0.5)
    _name_by(left, shown[shown["skip"] == inf], "soft_rank", near, "every γ", 30, (-9, 9))
    _name_by(right, ratio[ratio["skip"] == inf], "ratio", near, "γ = 0.5, 1, ∞", 44, (9, -9))
    _name_by(right, ratio[ratio["skip"] == 0.1], "ratio", far, "γ = 0.1", 24, (-7, 8))
    columns = ["skip", "width", *RANKS, "regularity", "autocorrelation", "layers"]
    return picture, metrics[columns]


def _rounded(metrics: pd.DataFrame) -> str:
    """How many layers, as a power of ten where they are one."""
    count = metrics["layers"].min()
    return "10⁶" if abs(count / 1e6 - 1) < 0.01 else f"{count:,}"


LAWS = {
    "gaussian": Look(BLUE, "", width=3.4),
    "uniform": Look(NAVY, "o", hollow=True),
    "rademacher": Look(NAVY, "^", DASHED),
}
"""By the law of the weights, without skips."""

SMALL_SKIPS = {law: replace(look, color=SKY) for law, look in LAWS.items()}
SMALL_SKIPS["gaussian"] = Look(SKY, "D", DASHED)
"""The same, where γ is 1 / (8 d) or 1 / (16 d)."""


def _pooled(errors: pd.Series) -> float:
    """The standard error of the mean of averages with these."""
    return float(np.hypot.reduce(errors) / len(errors))


def _relative_to_gaussian(metrics: pd.DataFrame) -> pd.DataFrame:
    """Soft ranks without skips by width and law. Raises NoRows without Gaussian weights."""
    plain = select(metrics, skip=inf)
    select(plain, law="gaussian")
    return plain.pivot_table(index="width", columns="law", values="soft_rank")


def _by_law(axes: Axes, metrics: pd.DataFrame, unit: pd.Series) -> None:
    """Means with bands of two standard errors, over a unit for each width."""
    for is_small, rows in metrics.groupby(in_lemma_5(metrics)):
        for law in LAWS:
            of = rows[rows["law"] == law].groupby("width")
            mean, error = of["soft_rank"].mean(), of["soft_rank_se"].apply(_pooled)
            look, over = (SMALL_SKIPS if is_small else LAWS)[law], unit.reindex(mean.index)
            if len(mean):
                look.band(axes, mean.index, (mean - 2 * error) / over, (mean + 2 * error) / over)
                look.line(axes, mean.index, mean / over)
    _width_axis(axes, metrics["width"])


def say_laws(tables: Tables) -> str:
    """How far the bound is below the rank, and how little the law matters."""
    metrics = averages(tables)
    plain = _relative_to_gaussian(metrics)
    change = 100 * plain.div(plain["gaussian"], axis=0).sub(1).abs().max().max()
    bound = rank_bound(metrics, 0.5)
    return (
        f"Theorem 14's bound is below {np.ceil(bound.max()):.0f} up to d = {plain.index[-1]}, the"
        f" soft rank over {int((metrics['soft_rank'] / bound).min())} times that; the law of the"
        f" weights changes it by at most {change:.0f} %"
    )


def draw_laws(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The soft rank beside its bound, and over that of Gaussian weights without skips."""
    metrics = averages(tables)
    metrics = metrics.assign(bound=rank_bound(metrics, 0.5))
    picture, ((left, right),) = sheet(gap=0.9)
    left.set_yscale("log")
    _by_law(left, metrics, pd.Series(1.0, sorted(metrics["width"].unique())))
    bound = metrics[np.isinf(metrics["skip"])].groupby("width")["bound"].max()
    guide(left, bound.index, bound)
    d = np.array(sorted(metrics["width"].unique()), float)
    ROOT.line(left, d, d**0.5, zorder=1)
    low = 0.6 * np.nanmin([bound.min(), 1])
    left.set_ylim(low, 1.5 * np.nanmax([metrics["soft_rank"].max(), 2]))
    heights = {0.25: "¼", 0.5: "½", 1: "1", 2: "2", 4: "4", 8: "8", 16: "16", 32: "32"}
    heights = {y: text for y, text in heights.items() if low <= y <= left.get_ylim()[1]}
    ticks(left.yaxis, heights, list(heights.values()))
    ROOT.name_at(left, d, d**0.5, "√d", 40, (6, -9))
    if len(bound) and np.isfinite(bound).all():
        QUIET.name_at(left, bound.index, bound, "Theorem 14", 24, (6, -9))
    everywhere = metrics.groupby("width", as_index=False)["soft_rank"].max()
    _name_by(left, everywhere, "soft_rank", LAWS["gaussian"], "every law", 20, (-8, 10))
    with or_empty(right):
        plain = _relative_to_gaussian(metrics)
        _by_law(right, metrics, plain["gaussian"] / 100)
        low, high = right.get_ylim()
        right.set_ylim(min(low, 99), max(high, 101))
        step = max(1, int(np.ceil((high - 100) / 4)))
        right.yaxis.set_major_locator(FixedLocator([100 + step * n for n in range(5)]))
        right.yaxis.set_major_formatter(lambda y, _: "same" if y == 100 else f"{y - 100:+g} %")
        relative = plain.div(plain["gaussian"] / 100, axis=0).reset_index()
        for law, text, at, away in (
            ("gaussian", "Gaussian", 40, (0, -10)),
            ("uniform", "uniform", 11, (0, -11)),
            ("rademacher", "±1", 17, (6, 9)),
        ):
            if law in relative:
                _name_by(right, relative, law, LAWS[law], text, at, away)
        small = metrics[in_lemma_5(metrics)].groupby("width")["soft_rank"].mean()
        small = (100 * small / plain["gaussian"].reindex(small.index)).dropna().reset_index()
        words = "γ = 1/(8d), 1/(16d)"
        small.columns = ["width", "ratio"]
        _name_by(right, small, "ratio", SMALL_SKIPS["gaussian"], words, 13, (9, 9))
    panel(left, "a", "soft rank, mean over the layers", "width d")
    panel(right, "b", "relative to Gaussian, no skips", "width d")
    return picture, metrics[["law", "skip", "width", *RANKS, "regularity", "layers"]]


OF_TAU = {0.1: Look(SKY, "D"), 0.5: Look(BLUE, "o"), 0.9: Look(NAVY, "s")}
ONE_SIGN = Look(GREEN, "v", DASHED)


def say_needed(tables: Tables) -> str:
    """What thresholds, weights of one sign, and a branch of order 1 / L make of the rank."""
    metrics = averages(tables)
    rest = select(metrics, law="gaussian")
    least = (rest["soft_rank"] / rank_bound_at_own(rest)).min()
    products = scaled_products(tables).groupby(["branch", "L"])["log_ratio"].median()
    return (
        f"The soft rank is at least {least:.0f} times its bound at τ = 0.1, 0.5 and 0.9; weights of"
        f" one sign leave r = {select(metrics, law='asymmetric')['rank_bound'].max():.2f}; without"
        f" batch norm γ = 1 / L keeps σ₂/σ₁ at {np.exp(products['1 / L'].iloc[-1]):.2f}"
    )


def draw_assumptions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Soft ranks at three thresholds, r by the sign of the weights, products by the branch."""
    metrics = averages(tables)
    rest = select(metrics, law="gaussian")
    picture, ((left, middle, right),) = sheet(1, 3, gap=1.0, right=0.95)
    deep, bounds = rest[rest["skip"] == rest["skip"].max()], []
    for axes in (left, middle):
        axes.set_yscale("log")
        _width_axis(axes, deep["width"])
    for tau, rows in deep.groupby("tau"):
        look = OF_TAU.get(tau, OTHER)
        look.line(left, rows["width"], rows["soft_rank"])
        bound = rank_bound(rows, tau)
        guide(left, rows["width"], bound)
        bounds.append((bound.iloc[-1], f"τ = {tau:g}", look))
    one, other = select(metrics, law="asymmetric"), deep[deep["tau"] == deep["tau"].median()]
    one = one[one["skip"] == one["skip"].max()]
    for look, rows in ((OF_TAU[0.5], other), (ONE_SIGN, one)):
        look.line(middle, rows["width"], rows["rank_bound"])
    right.set(xscale="log", yscale="log")
    products = scaled_products(tables).groupby(["branch", "L"], as_index=False)["log_ratio"]
    ends = []
    for branch, rows in products.median().groupby("branch"):
        look = Look(RUST, "D", hollow=branch[0] == "4") if "L" in branch else Look(ORANGE, "s")
        ratio = np.exp(rows["log_ratio"])
        look.line(right, rows["L"], ratio)
        ends.append((ratio.iloc[-1], f"γ = {branch}", look))
    right.set_ylim(1e-5, 2)
    name_ends(right, [(max(end, 1e-5), text, look) for end, text, look in ends])
    ticks(right.xaxis, sorted(set(scaled_products(tables)["L"])))
    ticks(right.yaxis, [1, 1e-2, 1e-4], ["1", "0.01", "0.0001"])
    ticks(left.yaxis, [0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ticks(middle.yaxis, [1, 2, 4, 8, 16])
    name_ends(left, bounds)
    QUIET.name(left, 0.5, 0.3, "bounds", transform=left.transAxes)
    _name_by(middle, other, "rank_bound", OF_TAU[0.5], "mean zero", 40, (9, -10))
    _name_by(middle, one, "rank_bound", ONE_SIGN, "one sign", 12, (4, 9))
    panel(left, "a", "soft rank at τ", "width d")
    panel(middle, "b", "r by weights", "width d")
    panel(right, "c", "σ₂/σ₁ after L layers", "L")
    columns = ["law", "tau", "skip", "width", "soft_rank", "rank_bound", "regularity"]
    return picture, metrics[columns]


def say_nearer(tables: Tables) -> str:
    """The exponent where d is smallest and largest, and what r has come to."""
    rows = select(averages(tables), skip=inf)
    rows = powers_of_two(rows).sort_values("width")
    powers = np.diff(np.log(rows["soft_rank"])) / np.diff(np.log(rows["width"]))
    ratio = rows["rank_bound"].iloc[-1] / rows["width"].iloc[-1] ** 0.5
    return (
        f"The exponent of the soft rank in d is {powers[0]:.2f} over the first doubling of d,"
        f" {powers[-1]:.2f} over the last, up to d = {rows['width'].iloc[-1]:,}; r has come to"
        f" {ratio:.2f} √d"
    )


def draw_wide(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Up to d = 1024: soft rank and r over sqrt(d), and the exponent in d between two widths."""
    metrics = averages(tables)
    picture, ((left, right),) = sheet(gap=0.75)
    for skip, rows in metrics.groupby("skip"):
        rows, look = rows.sort_values("width"), TWO.get(skip, OTHER)
        d = rows["width"].to_numpy(float)
        for column, text in (("soft_rank", "soft rank"), ("rank_bound", "r, its bound")):
            look.line(left, d, rows[column] / d**0.5)
            power = np.diff(np.log(rows[column])) / np.diff(np.log(d))
            between = (d[1:] * d[:-1]) ** 0.5
            look.line(right, between, power)
            if isinf(skip) and len(d) > 1:
                away = (9, -9) if column == "soft_rank" else (0, -12)
                look.name_at(left, d, rows[column] / d**0.5, text, 190, away)
                shift = (9, 6) if column == "soft_rank" else (6, 9)
                look.name_at(right, between, power, text.split(",")[0], 2 * between[0], shift)
            if column == "soft_rank":
                away = (7, -9) if isinf(skip) else (-6, 9)
                look.name_at(left, d, rows[column] / d**0.5, gamma(skip), 15, away)
    for axes, height in ((left, 1), (right, 0.5)):
        _width_axis(axes, metrics["width"])
        ROOT.line(axes, axes.get_xlim(), [height] * 2, zorder=1)
    place = {"transform": left.get_yaxis_transform(), "ha": "right"}
    ROOT.name(left, 0.98, 1.03, "√d", **place)
    panel(left, "a", "mean over the layers, over √d", "width d")
    panel(right, "b", "exponent between two widths", "width d")
    return picture, metrics[["skip", "width", *RANKS, "layers"]]


def say_regular(tables: Tables) -> str:
    """From where on alpha is below 0.9, and how far the norm is below Lemma 13."""
    metrics = averages(tables)
    metrics = metrics[metrics["skip"].isin(paper_skips(metrics))]
    last = metrics.loc[metrics["regularity"] >= 0.9, "width"].max()
    where = f"for d > {last:.0f}" if np.isfinite(last) else "at every d"
    share = 100 * metrics["frobenius"] / norm_bound(metrics)
    return (
        f"α is below 0.9 {where} and falls, so that ‖M‖² grows no faster than d^1.5: it is"
        f" {share.min():.0f} to {share.max():.0f} % of what Lemma 13 allows"
    )


def draw_fig8(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figures 8 and 9: alpha against d, the norm of M, and the norm over d^1.5."""
    metrics = averages(tables)
    skips = paper_skips(metrics)
    metrics = metrics[metrics["skip"].isin(skips)].sort_values("width")
    unit = metrics["width"] ** 1.5
    metrics = metrics.assign(
        ratio=metrics["frobenius"] / unit,
        bound=norm_bound(metrics),
        level=norm_bound(metrics) / unit,
    )
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.7)
    middle.set_yscale("log")
    for axes, column in ((left, "regularity"), (middle, "frobenius"), (right, "ratio")):
        for skip, rows in metrics.groupby("skip"):
            TWO.get(skip, OTHER).line(axes, rows["width"], rows[column])
        _width_axis(axes, metrics["width"])
    level(left, 0.9)
    d = np.array(sorted(metrics["width"].unique()), float)
    ROOT.line(middle, d, d**1.5, zorder=1)
    ROOT.line(right, d, d**0, zorder=1)
    bound = metrics[metrics["skip"] == skips[0]].dropna(subset="bound")
    for axes, column, away in ((middle, "bound", (-6, 9)), (right, "level", (0, 11))):
        QUIET.line(axes, bound["width"], bound[column], zorder=1)
        at = 70
        _name_by(axes, bound, column, QUIET, "Lemma 13", at, away)
    ROOT.name_at(middle, d, d**1.5, "d$^{1.5}$", 75, (6, -8))
    for skip, away in zip(skips, ((8, 7), (-7, -8)), strict=False):
        rows = metrics[metrics["skip"] == skip]
        at = rows["width"].min() * (1.1 if away[0] > 0 else 4.2)
        _name_by(left, rows, "regularity", TWO.get(skip, OTHER), gamma(skip), at, away)
    panel(left, "a", "regularity α", "width d")
    panel(middle, "b", "mean of ‖M‖²", "width d")
    panel(right, "c", "the same, over d$^{1.5}$", "width d")
    columns = [
        "skip",
        "width",
        "regularity",
        "regularity_se",
        "frobenius",
        "frobenius_se",
        "layers",
    ]
    return picture, metrics[columns]


def mean_spectrum(tables: Tables) -> pd.DataFrame:
    """The singular values by gamma, layer and index, averaged over chains."""
    keys = ["width", "skip", "layer", "index"]
    return tables["spectrum"].groupby(keys, as_index=False)["singular_value"].mean()


SOFT = 0.5**0.5
"""What the soft rank counts."""


def say_apart(tables: Tables) -> str:
    """How fast the largest singular value falls, and the soft rank rises."""
    rows = select(tables["spectrum"], skip=inf)
    values = rows.set_index(["replicate", "layer", "index"])["singular_value"].unstack("index")
    share = values[1].groupby("layer").median()
    rank = (values >= SOFT).sum(axis=1).groupby("layer").mean()
    layer = min(10, share.index.max())
    return (
        f"Nearly collinear inputs are pulled apart: in {layer} layers the largest singular value"
        f" falls to {100 * share[layer] / share[0]:.0f} %, and the soft rank rises from"
        f" {rank[0]:.0f} to {rank[layer]:.1f}"
    )


def draw_fig3b(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3b: the top ten singular values by layer from nearly collinear inputs."""
    spectrum = tables["spectrum"]
    shown = spectrum[spectrum["skip"] == spectrum["skip"].max()]
    found = spread(shown, ["layer", "index"], ["singular_value"])
    colors = shades(sorted(found["index"].unique()), NAVY, BLUE, SKY, "#a8d8f0")
    looks = {i: Look(color, "", width=3.4 if i == 1 else 2.0) for i, color in colors.items()}
    picture, ((left, right),) = sheet(gap=0.75, right=0.75)
    last = max(1, found["layer"].max())
    right.set_yscale("log")
    for index, rows in found.groupby("index"):
        low, high = rows["singular_value_low"], rows["singular_value_high"]
        looks[index].band(left, rows["layer"], low, high)
        for axes in (left, right):
            above = {"zorder": 4 - 0.1 * index}
            looks[index].line(axes, rows["layer"], rows["singular_value"], **above)
    for axes in (left, right):
        axes.set_xlim(0, last)
        level(axes, SOFT)
    left.set_ylim(0, None)
    ticks(right.yaxis, [0.01, 0.1, 1])
    panel(left, "a", "ten largest singular values / √N", "layer")
    panel(right, "b", "the same, logarithmic", "layer")
    ends = found[found["layer"] == last].set_index("index")["singular_value"]
    named = [index for index in (1, 8, 9, 10) if index in ends]
    names = [(ends[index], f"i = {index}", looks[index]) for index in named]
    name_ends(right, [*names, (SOFT, "√½", QUIET)])
    return picture, mean_spectrum(tables)


RESIDUAL = {0.1: Look(ORANGE, ""), 0.5: Look(RUST, "")}
"""By gamma: without batch norm is warm, the stronger the darker."""

GAP = Look(INK, "", DOTTED, 1.6)


def say_collapse(tables: Tables) -> str:
    """How fast the ratio falls, and how far the matrix still moves."""
    products = select(tables["products"], law="gaussian")
    strong = products["skip"].max()
    products = select(products, skip=strong)
    end = products["layer"].max()
    last = products.loc[products["layer"] == end, "log_ratio"].median()
    return (
        f"Skips do not help: σ₂/σ₁ falls tenfold in {-end * np.log(10) / last:.0f} layers (γ ="
        f" {strong:g}), to rank one; but the matrix does not converge: it moves by"
        f" {products['step_length'].median():.2f} in every layer"
    )


def draw_lemma3(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 3: sigma_2 / sigma_1 without normalisation, and how far H~ moves in a layer."""
    products = tables["products"]
    keys = ["width", "skip", "law", "layer"]
    drawn = products.groupby(keys, as_index=False)[["log_ratio", "step_length", "gap"]].mean()
    found = spread(products, ["skip", "law", "layer"], ["log_ratio", "step_length"])
    ratios = [name for name in found if name.startswith("log_ratio")]
    found[ratios] = np.exp(found[ratios])
    picture, ((left, right),) = sheet(gap=1.55, right=0.9)
    left.set_yscale("log")
    end, ends = max(1, products["layer"].max()), ([], [])
    for (skip, law), rows in found.groupby(["skip", "law"]):
        look = RESIDUAL.get(skip, Look(VERMILION, ""))
        thin = replace(look, width=1.4, dashes=DASHED)
        for axes, column, names in zip(
            (left, right), ("log_ratio", "step_length"), ends, strict=True
        ):
            if law == "gaussian":
                look.band(axes, rows["layer"], rows[f"{column}_low"], rows[f"{column}_high"])
                names.append((rows[column].iloc[-1], gamma(skip), look))
            drawn_as = look if law == "gaussian" else thin
            drawn_as.line(axes, rows["layer"], rows[column], zorder=2 + (law != "gaussian"))
    for gap in products.groupby("skip")["gap"].first():
        GAP.line(left, [0, end], [1, np.exp(-gap * end)], zorder=4)
    left.set_ylim(max(1e-15, 0.1 * found["log_ratio"].min()), 3)
    right.set_ylim(0, None)
    for axes in (left, right):
        axes.set_xlim(0, end)
    ticks(left.yaxis, [1, 1e-5, 1e-10, 1e-15], ["1", "$10^{-5}$", "$10^{-10}$", "$10^{-15}$"])
    left.set_ylim(max(1e-15, 0.1 * found["log_ratio"].min()), 3)
    for axes, names in zip((left, right), ends, strict=True):
        name_ends(axes, names)
    place = {"transform": left.transAxes, "ha": "left", "linespacing": 1.1}
    GAP.name(left, 0.05, 0.2, "dotted: Lyapunov gap\nthin: uniform weights", size=SMALL, **place)
    panel(left, "a", "σ₂/σ₁ of the hidden layer", "layer")
    panel(right, "b", "change in a layer, at norm 1", "layer")
    return picture, drawn


MARKERS = "osD^vP"
APART = (1, 0.85, 1.15, 1)
"""Factors by which the names of neighbouring widths are parted."""


def say_expansion(tables: Tables) -> str:
    """How near the change is to the promised one, and the power of what is left over."""
    rows = tables["expansions"]
    rows = rows[rows["skip"] == rows["skip"].min()]
    far = ((rows["change"] - rows["predicted"]) / rows["width"] ** 2).abs().max()
    left = remainders(tables)
    left = nonempty(left[left["skip"] <= 0.02], "γ up to 0.02")
    slopes = [
        np.polyfit(np.log(of["skip"]), np.log(of["remainder"]), 1)[0]
        for _, of in left.groupby(["width", "law"])
        if len(of) > 1
    ]
    power = nonempty(pd.Series(slopes), "two γ up to 0.02").mean()
    return (
        f"‖M‖² changes by γ²δ as Lemma 7 says, in all {len(rows)} matrices to within {far:.3f}"
        f" d²γ²; what is left over falls as the power {power:.1f} of γ, faster than the O(γ)"
        " promised"
    )


def draw_lemma7(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 7: the measured change against delta_F at the smallest gamma; what is left over."""
    expansions = tables["expansions"]
    smallest = expansions[expansions["skip"] == expansions["skip"].min()]
    unit = smallest["width"] ** 2
    drawn = smallest.assign(x=smallest["predicted"] / unit, y=smallest["change"] / unit)
    widths = sorted(expansions["width"].unique())
    colors = shades(widths, *BY_WIDTH)
    picture, ((left, right),) = sheet(gap=0.95)
    EQUAL.line(left, *2 * [[drawn["x"].min(), drawn["x"].max()]], zorder=1)
    left.set(xlim=left.get_xlim(), ylim=left.get_ylim())
    with or_empty(right):
        right.set(xscale="log", yscale="log")
        rest = remainders(tables)
        _remainder_panel(right, rest, colors)
        drawn_csv = rest
    for (width, law), rows in drawn.groupby(["width", "law"]):
        look, size = _of_matrix(widths, colors, width, law)
        look.line(left, rows["x"], rows["y"], linestyle="", markersize=size, markeredgewidth=0.8)
    EQUAL.name(left, drawn["x"].median() - 0.15, drawn["x"].median() + 0.15, "equal", ha="right")
    panel(left, "a", "change of ‖M‖² over (γd)², measured", "the same, promised: δ(M) / d²")
    panel(right, "b", "what is left over, over (γd)²", "γ")
    columns = ["width", "law", "replicate", "skip", "predicted", "change", "change_se"]
    return picture, drawn_csv if right.lines else smallest[columns]


EQUAL = Look(INK, "", DASHED, 1.6)


def _of_matrix(widths: list, colors: dict, width: int, law: str) -> tuple[Look, float]:
    """The look of a width and a law, and the size of its markers."""
    marker, hollow = MARKERS[widths.index(width) % len(MARKERS)], law == "uniform"
    look = Look(colors[width], marker, DASHED if hollow else "-", 1.8, hollow)
    return look, 3.5 if hollow else 8


def _remainder_panel(axes: Axes, left: pd.DataFrame, colors: dict) -> None:
    """What Lemma 7 leaves over against gamma, with the slopes one and two."""
    widths = sorted(colors)
    for (width, law), rows in left.groupby(["width", "law"]):
        look, size = _of_matrix(widths, colors, width, law)
        look.line(axes, rows["skip"], rows["remainder"], markersize=size, markeredgewidth=0.8)
        if law == "gaussian":
            first = rows.sort_values("skip").iloc[0]
            height = first["remainder"] * APART[widths.index(width) % len(APART)]
            away = {"xytext": (-8, 0), "textcoords": "offset points", "ha": "right"}
            look.name(axes, first["skip"], height, f"d = {width}", **away)
    smallest, low = left["skip"].min(), left["remainder"].min()
    ends = smallest * np.array([2.4, 24.0])
    for power, text in ((1, "γ"), (2, "γ²")):
        guide(axes, ends, low * 0.9**power * (ends / ends[0]) ** power)
        QUIET.name(axes, 1.1 * ends[1], low * 0.9**power * 10.0**power, text, ha="left")
    axes.set_xlim(0.28 * smallest, 1.35 * max(left["skip"].max(), 2 * smallest))
    ticks(axes.xaxis, sorted(left["skip"].unique()))
    ticks(axes.yaxis, [1e-4, 1e-3, 1e-2, 0.1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])


STAR = Look(VERMILION, "o")


def _by_width(axes: Axes, rows: pd.DataFrame, column: str, colors: dict) -> None:
    """A line for each width, the darker the wider; the band is two standard errors."""
    for d, of in rows.groupby("width"):
        look = Look(colors[d], "", width=2.6)
        k, mean, two = of["input_rank"], of[column], 2 * of[f"{column}_se"]
        look.band(axes, k, mean - two, mean + two)
        look.line(axes, k, mean)
        if column == "soft_rank":
            text = f"d = {d}" if d == rows["width"].min() else f"{d}"
            away = {"xytext": (5, 0), "textcoords": "offset points", "ha": "left", "size": SMALL}
            look.name(axes, k.iloc[-1], mean.iloc[-1], text, **away)


def say_live(tables: Tables) -> str:
    """k* at the smallest and the largest width, and its power."""
    stars = select(crossings(tables), skip=inf).sort_values("width")
    power, _ = power_law(stars["width"], stars["crossing"])
    first, last = stars.iloc[0], stars.iloc[-1]
    return (
        "Inputs of lower rank end at a lower rank; from k* directions on one more does not grow:"
        f" {first['crossing']:.1f} at d = {first['width']:.0f}, {last['crossing']:.1f} at d ="
        f" {last['width']:.0f}, as the power {power:.2f} of the width"
    )


def draw_live(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Beyond the paper: where each input rank ends, why, and how many directions live."""
    ranks = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    strongest = ranks["skip"].max()
    shown = ranks[(ranks["skip"] == strongest) & (ranks["input_rank"] > 1)]
    shown = nonempty(shown, "input of rank two or more")
    stars = crossings(tables)
    colors = shades(sorted(shown["width"].unique()), *BY_WIDTH)
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.95, right=0.35, ratios=[1.25, 1, 1])
    k_axis = (1.8, 1.55 * max(4, shown["input_rank"].max()))
    top = 1.35 * max(4, shown["soft_rank"].max(), stars["crossing"].max() if len(stars) else 0)
    left.set(xscale="log", yscale="log", xlim=k_axis, ylim=(1.8, top))
    middle.set(xscale="log", xlim=k_axis, ylim=(-0.15, 0.4))
    right.set(yscale="log", ylim=(1.8, top))
    kept = np.array([2.0, top])
    ROOT.line(left, kept, kept, zorder=1, scalex=False, scaley=False)
    ROOT.name_at(left, kept, kept, "all kept", 0.8 * top, (-7, 4))
    _by_width(left, shown, "soft_rank", colors)
    _by_width(middle, shown, "exponent", colors)
    ROOT.line(middle, k_axis, [0, 0], zorder=1)
    for star in stars[stars["skip"] == strongest].itertuples():
        ends = shown[shown["width"] == star.width].set_index("input_rank")["soft_rank"]
        if len(ends):
            STAR.line(left, [star.crossing], [np.interp(star.crossing, ends.index, ends)])
            STAR.line(middle, [star.crossing], [0])
    widest = stars[stars["skip"] == strongest].sort_values("width").tail(1)
    for star in widest.itertuples():
        away = {"xytext": (2, -13), "textcoords": "offset points"}
        ends = shown.loc[shown["width"] == star.width, "soft_rank"]
        STAR.name(left, star.crossing, ends.max(), "k*", **away)
    STAR.name(middle, 0.93, 0.33, "k*", transform=middle.transAxes)
    for skip, rows in stars.groupby("skip"):
        look = TWO.get(skip, OTHER)
        look.line(right, rows["width"], rows["crossing"])
        away = (8, -9) if isinf(skip) else (-4, 8)
        at = 5 * rows["width"].min()
        _name_by(right, rows, "crossing", look, gamma(skip), at, away)
    d = np.array([shown["width"].min(), shown["width"].max()], float)
    ROOT.line(right, d, d**0.5, zorder=1)
    ROOT.name_at(right, d, d**0.5, "√d", 80, (6, -8))
    _width_axis(right, shown["width"])
    powers = [2**n for n in range(1, 12)]
    for axis in (left.yaxis, right.yaxis):
        ticks(axis, [k for k in powers if k <= top])
    for axis in (left.xaxis, middle.xaxis):
        ticks(axis, [k for k in powers if k <= k_axis[1]])
    ticks(middle.yaxis, [-0.1, 0, 0.1, 0.2, 0.3, 0.4])
    panel(left, "a", "soft rank of deep layers", "rank k of the input")
    panel(middle, "b", "growth of one more", "rank k of the input")
    panel(right, "c", "live directions k*", "width d")
    columns = [
        "skip",
        "width",
        "input_rank",
        "soft_rank",
        "soft_rank_se",
        "exponent",
        "exponent_se",
    ]
    return picture, ranks[columns].merge(live_directions(tables), on=["skip", "width"])


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the drawing that goes with what it measured."""
    for table, drawing in OVERVIEW_OF.items():
        if table in tables:
            picture, drawn = drawing(tables)
            return picture, drawn if len(drawn) <= 40 else drawn.iloc[:: len(drawn) // 20]
    raise KeyError(f"none of {', '.join(OVERVIEW_OF)} among {', '.join(tables)}")


OVERVIEW_OF = {
    "metrics": draw_fig3a,
    "spectrum": draw_fig3b,
    "products": draw_lemma3,
    "expansions": draw_lemma7,
    "input_ranks": draw_live,
}


HEADLINE = ["soft_rank", "rank_bound", "log_ratio", "change"]

FIGURES = [
    Drawing(
        "rank-fig3a",
        draw_fig3a,
        whose="as in the paper",
        findings=[Finding(say_growth, holds=["soft-rank-growth", "r-growth"])],
        caption=over_layers(
            "(a) The soft rank of the hidden layers, averaged over {layers} of chains; dashed: the"
            " root of the width d. (b) The same over the root of d. Line: γ = ∞, circles on it: γ ="
            " 1, triangles: γ = 0.5, dashed with diamonds: γ = 0.1. The band is a standard"
            " deviation over the layers to either side, at γ = ∞; errors of the means are smaller"
            " than the markers. Widths are the paper's, 8, 16, .., 256."
        ),
    ),
    Drawing(
        "rank-laws",
        draw_laws,
        whose="ours",
        findings=[Finding(say_laws, holds=["soft-rank-bound"])],
        caption=over_layers(
            "(a) The soft rank, averaged over {layers} of chains, for Gaussian weights (wide line),"
            " and for weights of bounded support: uniform (circles) and ±1 (triangles); dark"
            " without skips, light with γ at 1/(8 d) or 1/(16 d), as Lemma 5 asks for. Dashed: the"
            " root of d; dotted: the lower bound of Theorem 14. (b) The same over that of Gaussian"
            " weights without skips. Points are means, bands two standard errors to either side."
        ),
        shows={"law": ["gaussian", "uniform", "rademacher"]},
    ),
    Drawing(
        "rank-assumptions",
        draw_assumptions,
        whose="ours",
        findings=[
            Finding(
                say_needed,
                holds=["soft-rank-bound", "one-sign-collapses", "scaled-branch-keeps-rank"],
            )
        ],
        caption="(a) The soft rank at τ = 0.1, 0.5 and 0.9 (the darker, the larger), averaged over"
        " depth, without skips; dotted: their bounds of Theorem 14. (b) The bound r of the rank,"
        " for Gaussian weights and for weights of one sign, uniform on [0, 2√3]. (c) Without batch"
        " norm: the second singular value over the first behind L layers, where the weight γ of the"
        " branch beside the skip is constant, and where it falls as 1 / L; medians over the chains;"
        " what is below 0.00001 is drawn there.",
        shows={"law": ["gaussian", "asymmetric"]},
    ),
    Drawing(
        "rank-wide",
        draw_wide,
        whose="ours",
        findings=[Finding(say_nearer, holds=["soft-rank-growth"])],
        caption=over_layers(
            "(a) The soft rank and its lower bound r, averaged over {layers} of chains, over the"
            " root of d. (b) Their exponent in d between two neighbouring widths; dashed: a half."
            " Filled: γ = ∞; hollow: γ = 0.1. Errors of the means are smaller than the markers."
        ),
    ),
    Drawing(
        "rank-fig8",
        draw_fig8,
        whose="as in the paper",
        findings=[
            Finding(
                say_regular,
                holds=["regularity-below-0.9", "regularity-falls", "norm-bound", "norm-growth"],
            )
        ],
        caption=over_layers(
            "Figures 8 and 9. (a) Regularity constant α of the invariant law; dotted: 0.9. (b) Mean"
            " of the squared norm of M, with the 1.5th power of d (dashed) and the upper bound of"
            " Lemma 13 at γ = 1 (dotted). (c) The same over the 1.5th power of d. Points are"
            " averages over {layers} of chains at γ = 1 (hollow) and γ = 0.1; their errors are"
            " smaller than the markers."
        ),
    ),
    Drawing(
        "rank-fig3b",
        draw_fig3b,
        whose="as in the paper, no skips",
        findings=[Finding(say_apart, holds=["collinear-pulled-apart"])],
        caption="(a) The ten largest singular values of the hidden layers, over the root of the"
        " batch size N, from nearly collinear inputs, without skips. Lines are medians over the"
        " chains, the darker the larger the value, bands their whole range. (b) The same on a"
        " logarithmic scale. Dotted: √½, from where on the soft rank counts a value.",
    ),
    Drawing(
        "rank-lemma3",
        draw_lemma3,
        whose="as in the paper",
        findings=[Finding(say_collapse, holds=["ratio-decays"], fails=["matrix-converges"])],
        caption="(a) The second singular value over the first, without normalisation and with"
        " skips; dotted: the rate that the Lyapunov exponents of Gaussian weights promise. (b) How"
        " far the matrix, scaled to norm one, moves in a layer. Lines are medians over the chains,"
        " bands their whole range; solid: Gaussian weights, dashed and thin: uniform ones.",
        shows={"law": ["gaussian", "uniform"]},
    ),
    Drawing(
        "rank-lemma7",
        draw_lemma7,
        whose="as in the paper",
        findings=[Finding(say_expansion, holds=["expansion", "remainder"])],
        caption="(a) Change of the squared norm of M over one layer against what Lemma 7 says, at"
        " the smallest γ; every point is a matrix. (b) Root mean square over the matrices of what"
        " the lemma leaves over; dotted: the powers one and two of γ. The wider, the darker;"
        " filled: Gaussian weights; hollow and dashed: uniform ones.",
        shows={"law": ["gaussian", "uniform"]},
    ),
    Drawing(
        "rank-live",
        draw_live,
        whose="ours",
        findings=[Finding(say_live, holds=["other-laws-below"])],
        caption="(a) The soft rank in which inputs of rank k end, averaged over the layers, for"
        " several widths d; dashed: all k directions kept. (b) The rate at which one more"
        " direction grows, in nats a layer. Dots: k*, where it is zero. Both without skips; bands"
        " are two standard errors. (c) k* against the width; dashed: the root of d.",
    ),
]
