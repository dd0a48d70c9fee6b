"""Draw averages over very many layers against the width: figures 3a and 8, and three of ours."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.core import choices
from runner.papers.batch_norm_rank.looks import ROOT
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.rank_chain.figures.parts import (
    BRANCH,
    NUMBERS,
    OTHER,
    SKIPS,
    TWO,
    doubling,
    exponents,
    key_of_gamma,
    lines_by_gamma,
    name_line,
    name_power,
    over_layers,
)
from runner.papers.batch_norm_rank.rank_chain.tables import (
    averages,
    gamma,
    in_lemma_5,
    norm_bound,
    paper_skips,
    powers_of_two,
    rank_bound,
    scaled_products,
)
from runner.results import style
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name, looks_of
from runner.results.rows import Tables, nonempty, select
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
    sheet,
    ticks,
)


def say_growth(tables: Tables) -> str:
    """Return the headline of figure 3a: the range of the exponents of the soft rank in the width.

    The exponents are fitted for each gamma. Raises NoRows if no gamma has two widths that are
    powers of two.
    """
    rows = powers_of_two(averages(tables))
    powers = exponents(rows, ["skip"], "width", "soft_rank")
    return (
        "With batch norm the soft rank grows faster than √d: exponents are"
        f" {powers.min():.2f} to {powers.max():.2f} at widths {rows['width'].min()} to"
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
    picture, ((left, right),) = sheet(gap=0.75, right=1.25)
    without, near = shown[shown["skip"] == inf], SKIPS[inf]
    for axes, column, power in ((left, "soft_rank", 0), (right, "ratio", 0.5)):
        lines_by_gamma(axes, shown, column, SKIPS)
        sd = without["soft_rank_sd"] / without["width"] ** power
        near.band(axes, without["width"], without[column] - sd, without[column] + sd)
    doubling(left.yaxis)
    name_power(left, shown["width"], 0.5, "√d, slope 0.5", 60, (10, -12))
    name_power(right, shown["width"], 0, "1 (slope 0.5)", 100, (0, -11))
    with or_empty(left):
        powers = exponents(shown, ["skip"], "width", "soft_rank")
        slopes_of = f"every γ: slopes\n{powers.min():.2f} to {powers.max():.2f}"
        name_line(left, without, "soft_rank", near, slopes_of, 60, (-9, 12))
    last = shown.sort_values("width").groupby("skip")["ratio"].last()
    words = {skip: f"γ = {skip:g}" for skip in last.index} | {inf: "no skip:\nγ = ∞, band"}
    name_ends(right, [(y, words[skip], SKIPS.get(skip, OTHER)) for skip, y in last.items()])
    QUIET.note(left, 0.45, 0.08, BRANCH)
    panel(left, "a", "soft rank, mean over the layers", "width d")
    panel(right, "b", "soft rank / √d", "width d")
    return picture, metrics[NUMBERS]


LAWS = looks_of(NAMES["law"])
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
    doubling(axes.xaxis)


def say_laws(tables: Tables) -> str:
    """Return the headline: soft rank / bound of Theorem 14, and the effect of the distribution.

    Its numbers are the smallest ratio, and the largest relative difference to Gaussian weights.
    Raises NoRows if Gaussian weights without skip connections were not run.
    """
    metrics = averages(tables)
    plain = select(_relative_to_gaussian(metrics), skip=inf)
    bound = rank_bound(metrics, metrics["tau"])
    return (
        f"The soft rank is over {int((metrics['soft_rank'] / bound).min())} times Theorem 14's"
        " bound; without skips the distribution changes it by at most"
        f" {100 * (plain['soft_rank'] - 1).abs().max():.0f} %"
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
    picture, ((left, right),) = sheet(gap=0.8)
    _by_law(left, metrics)
    bound = without.groupby("width", as_index=False)["bound"].max()
    QUIET.line(left, bound["width"], bound["bound"])
    doubling(left.yaxis)
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
    name_power(left, metrics["width"], 0.5, "√d", 40, (6, -9))
    name_line(left, bound, "bound", QUIET, "bound of\nTheorem 14", 24, (6, -13))
    left.set_ylim(top=1.5 * metrics["soft_rank"].max())
    if in_lemma_5(metrics).any():
        SMALL_SKIPS["gaussian"].note(left, 0.04, 0.94, "with skips")
    LAWS["uniform"].note(left, 0.04, 0.88, "without skips")
    QUIET.note(left, 0.04, 0.82, "(three distributions)")
    with or_empty(right):
        relative = _relative_to_gaussian(metrics)
        _by_law(right, relative, apart=True)
        right.set_ylim(0.985, None)
        plain, small = relative[relative["skip"] == inf], relative[in_lemma_5(relative)]
        if len(small):
            looks = {}
            for law in ("gaussian", "rademacher", "uniform"):
                name = NAMES["law"][law].drawn
                widths = small.loc[small["law"] == law, "width"].unique()
                look, words = SMALL_SKIPS[law], name
                if len(widths) == 1:
                    look, words = replace(look, dashes=""), f"{name}, d = {widths[0]}"
                looks |= {words: look} if len(widths) else {}
            style.key(right, looks, loc="upper right", title="with skips, small γ")
        for law, at, away in (
            ("gaussian", 40, (0, -11)),
            ("uniform", 11, (0, -11)),
            ("rademacher", 17, (6, 9)),
        ):
            name, rows = NAMES["law"][law], plain[plain["law"] == law]
            name_line(right, rows, "soft_rank", name.look, name.drawn, at, away)
        if len(plain):
            most = plain.loc[(plain["soft_rank"] - 1).abs().idxmax()]
            text = f"{100 * (most['soft_rank'] - 1):+.0f} %".replace("-", "−")
            above: dict = {"textcoords": "offset points", "xytext": (0, 11)}
            LAWS.get(most["law"], OTHER).name(
                right, most["width"], most["soft_rank"], text, **above
            )
    panel(left, "a", "soft rank, mean over the layers", "width d")
    panel(right, "b", "soft rank / that of Gaussian, no skips", "width d")
    return picture, metrics[NUMBERS]


OF_TAU = {0.1: Look(style.SKY, "D"), 0.5: Look(style.BLUE, "o"), 0.9: Look(style.NAVY, "s")}
ONE_SIGN = Look(style.GREEN, "v", DASHED)


def say_needed(tables: Tables) -> str:
    """Return the headline: with weights of mean zero, batch norm keeps the rank."""
    return "With mean-zero weights batch norm keeps the rank"


def say_also_without(tables: Tables) -> str:
    """Return the headline of `say_needed`, with residual weights that need no batch norm.

    With these weights γ networks without batch norm do not collapse to rank one.
    """
    scaled = [name for name in scaled_products(tables)["branch"].unique() if "L" in name]
    return (
        f"{say_needed(tables)}; without it, residual weights of"
        f" {' or '.join(sorted(scaled)).replace(' / ', '/')} avoid rank one"
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
        name_line(left, rows.assign(times=times), "times", look, f"τ = {tau:g}", 30, (0, 10))
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
        name_line(middle, rows, "rank_bound", look, text, at, away)
    doubling(left.xaxis, middle.xaxis, middle.yaxis)
    right.set_xscale("log")
    placed, products = rail(right, 1e-5, 2), scaled_products(tables)

    def branch(text: str) -> Name:
        if text.startswith("4 / "):
            return Name(f"γ = {text}", Look(style.PURPLE, "v", DASHED, hollow=True))
        color, marker = (style.RUST, "D") if "L" in text else (style.ORANGE, "s")
        return Name(f"γ = {text}", Look(color, marker))

    name_ends(right, curves(right, products, "L", "log_ratio", "branch", branch,
                            height=lambda logarithms: placed(np.exp(logarithms))))  # fmt: skip
    ticks(right.xaxis, sorted(set(products["L"])))
    ticks(right.yaxis, [1, 1e-2, 1e-4], ["1", "0.01", "0.0001"])
    QUIET.note(left, 0.04, 0.65, "τ: threshold of\nthe soft rank")
    QUIET.note(right, 0.42, 0.5, "γ: residual\nweight;\nσ: singular\nvalues of\nactivations")
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
            lines_by_gamma(axes, rows, column, TWO)
            name_line(axes, rows[rows["skip"] == inf], column, TWO[inf], text, *position)
        axes.axhline(height, color=ROOT.color, linestyle=DASHED, linewidth=ROOT.width, zorder=1)
    key_of_gamma(left, over, loc="center left")
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
    return f"The constant α falls with d; {say_regular(tables)}"


def draw_fig8(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figures 8 and 9: regularity constant alpha (a) and mean of ‖M‖² (b), against the width.

    The bound of Lemma 13 is drawn, too. Returns the picture and the averages over depth.
    """
    metrics = averages(tables)
    skips = paper_skips(metrics)
    metrics = metrics[metrics["skip"].isin(skips)].assign(bound=norm_bound)
    picture, ((left, right),) = sheet(gap=0.85)
    right.set_yscale("log")
    lines_by_gamma(left, metrics, "regularity", TWO)
    level(left, 0.9, "in the paper below 0.9 for d > 10", at=0.26)
    lines_by_gamma(right, metrics, "frobenius", TWO)
    bound = metrics[metrics["skip"] == skips[0]]
    QUIET.line(right, bound["width"], bound["bound"], zorder=1)
    share, words = metrics["frobenius"] / metrics["bound"], "bound of Lemma 13"
    if share.notna().any():
        top = metrics.loc[share.idxmax()]
        ends = [(top["width"], top[column]) for column in ("frobenius", "bound")]
        right.annotate("", *ends, arrowprops={"arrowstyle": "<->", "color": GREY})
        most = f"at most {np.ceil(100 * share.max()):.0f} %\nof it, at d = {top['width']:g}"
        words = f"{words}\n(‖M‖²: {most})"
    name_line(right, bound, "bound", QUIET, words, 60, (-8, 18))
    name_power(right, metrics["width"], 1.5, "d√d", 40, (9, -12))
    for skip, at, away in zip(skips, (9, 34), ((9, 6), (-8, -8)), strict=False):
        rows, look = metrics[metrics["skip"] == skip], TWO.get(skip, OTHER)
        name_line(left, rows, "regularity", look, gamma(skip), at, away)
    QUIET.note(left, 0.04, 0.06, BRANCH)
    QUIET.note(left, 0.46, 0.68, "α = E Tr(diag(M²)²)\n/ E Tr(M³)")
    panel(left, "a", "regularity constant α", "width d")
    panel(right, "b", "‖M‖², M = HHᵀ/N, mean", "width d")
    return picture, metrics[NUMBERS]


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
            " γ is the residual weight (∞: no skip connection)."
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
            " connections. Means are over {layers}; bands are ± two standard errors. Dark marks are"
            " networks without skip connections. Light marks are networks with the small residual"
            " weights of Lemma 5, a mean over γ = 1/(8d) and 1/(16d)."
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
        " values by depth, without batch norm; ratios below 0.00001 are at ≈ 0. γ is the residual"
        " weight.",
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
            "(a) shows α (figure 8), (b) the mean of ‖M‖² (figure 9), against the width d. The"
            " dashed line is d√d, and the dotted line in (b) is the bound of Lemma 13 at γ = 1."
            " Points are means over {layers}; standard errors are smaller than the markers. γ is"
            " the residual weight (circles: 1, diamonds: 0.1)."
        ),
    ),
]
