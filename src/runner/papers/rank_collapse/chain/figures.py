"""Drawings of study `rank_chain`: Figures 3a, 3b, 8, 9, Lemmas 3 and 7, live directions."""

from math import inf, isinf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from runner.papers.rank_collapse import looks
from runner.papers.rank_collapse.chain.tables import (
    RANK_KEYS,
    TAU,
    averages,
    gamma,
    in_lemma_5,
    live_directions,
    norm_bound,
    paper_skips,
    power_law,
    rank_bound,
    remainders,
)
from runner.results.captions import Said
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.style_before import (
    BLACK,
    DASHED,
    DOTTED,
    SOLID,
    Picture,
    band,
    guide,
    ordered,
    points,
    shades,
    subplots,
)

RANKS = [
    "soft_rank",
    "soft_rank_se",
    "soft_rank_sd",
    "rank_bound",
    "rank_bound_se",
    "rank_bound_sd",
]

ERRORS = "bars are two standard errors, from the means of chains or of pieces of them"


def over_layers(text: str) -> Said:
    """A caption that says, at `{layers}`, how many layers were averaged over."""

    def say(tables: Tables) -> str:
        layers = averages(tables)["layers"]
        ends = dict.fromkeys(f"{end:,}" for end in (layers.min(), layers.max()))
        return text.format(layers=f"{' to '.join(ends)} layers")

    return say


def _reference(**options) -> dict:
    """Of the lines that the paper compares with."""
    return {"color": BLACK, "linestyle": DASHED, "linewidth": points(1.1)} | options


def _style(skip: float) -> dict:
    """Colour and marker of a gamma; nested hollow markers, because the curves nearly coincide."""
    style = looks.skip(skip).both | {"linewidth": points(1.2)}
    style |= {"markersize": points(looks.SIZES.get(skip, 4.5)), "linestyle": SOLID}
    return style | ({} if looks.is_filled(skip) else {"fillstyle": "none"})


def _exponents(rows: pd.DataFrame, column: str) -> str:
    """The fitted powers of d, gamma by gamma, for a caption; nothing where there are none."""
    powers = {
        gamma(skip): power_law(of_skip["width"], of_skip[column])[0]
        for skip, of_skip in rows.groupby("skip")
    }
    words = [f"{power:.2f} at {name}" for name, power in powers.items() if np.isfinite(power)]
    return ", ".join(words) or "none"


def _legend(
    picture: Picture, *panels: Axes, more: list[Line2D] | None = None, ncols: int = 6
) -> None:
    """One legend below for all panels, each label once; more: handles that no panel has."""
    handles = {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    handles |= {handle.get_label(): handle for handle in more or []}
    if handles:
        picture.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols)


def _width_axis(axes: Axes, widths: pd.Series) -> None:
    ticks = sorted(d for d in set(widths) if np.log2(d) % 1 == 0) or sorted(set(widths))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(d) for d in ticks])
    axes.minorticks_off()
    axes.set_xlabel("width d")


def _rank_axis(axes: Axes) -> None:
    """A logarithmic vertical axis with plain powers of two; where these are few, also halfway.

    Call it when everything is drawn.
    """
    axes.set_yscale("log", base=2)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(2, [1, 1.5] if high < 8 * low else [1]))
    axes.yaxis.set_major_formatter("{x:g}")


def _rank_panel(axes: Axes, metrics: pd.DataFrame, column: str, tau: float) -> None:
    """One of the two ranks against d for every gamma, with sqrt(d) and Theorem 14's bound."""
    for skip, rows in metrics.groupby("skip"):
        error = 2 * rows[f"{column}_se"]
        axes.errorbar(rows["width"], rows[column], error, label=gamma(skip), **_style(skip))
        if isinf(skip):  # the others have nearly the same
            low, high = (rows[column] + side * rows[f"{column}_sd"] for side in (-1, 1))
            band(axes, rows["width"], low, high, looks.skip(skip).color)
    d = np.array(sorted(metrics["width"].unique()))
    alpha = metrics.groupby("width")["regularity"].max().loc[d]
    axes.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **_reference())
    axes.plot(d, rank_bound(alpha.reset_index(), tau), label="Theorem 14", **guide())
    _rank_axis(axes)
    _width_axis(axes, metrics["width"])


BOTH = {"soft_rank": (SOLID, r"rank$_{1/2}$"), "rank_bound": (DOTTED, "r")}
"""Dashes and names of the two ranks where one panel has both."""


def _ratio_panel(axes: Axes, metrics: pd.DataFrame) -> list[Line2D]:
    """Both ranks over sqrt(d); gives back what tells them apart."""
    for skip, rows in metrics.groupby("skip"):
        root = np.sqrt(rows["width"])
        for column, (dashes, _) in BOTH.items():
            ratio, error = rows[column] / root, 2 * rows[f"{column}_se"] / root
            axes.errorbar(rows["width"], ratio, error, **_style(skip) | {"linestyle": dashes})
    axes.axhline(1, **_reference())
    axes.set(ylabel=r"mean over $\sqrt{d}$", title=r"both over $\sqrt{d}$")
    _width_axis(axes, metrics["width"])
    lines = BOTH.values()
    return [Line2D([], [], color=BLACK, linestyle=dashes, label=label) for dashes, label in lines]


def say_fig3a(tables: Tables) -> str:
    """Panels, bars and band of figure 3a, and the exponents."""
    metrics = averages(tables)
    text = (
        "Averages over {layers} of chains: the soft rank (left) and its lower bound r"
        " (middle), each with the root of d and the bound of Theorem 14; and both over the root of"
        f" d (right). Markers are nested: curves of large γ lie on each other. Points are means,"
        f" {ERRORS}; the band is a standard deviation over the layers"
        f" to either side, at {gamma(metrics['skip'].max())}. Fitted powers of d: of the soft rank"
        f" {_exponents(metrics, 'soft_rank')}; of r {_exponents(metrics, 'rank_bound')}."
    )
    return over_layers(text)(tables)


@figure("rank-fig3a", caption=say_fig3a)
def draw_fig3a(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3a: the soft rank against d; beside it r, and both over sqrt(d).

    The band is a standard deviation over depth to either side, without skips.
    """
    metrics = averages(tables)
    picture, axes = subplots(1, 3, size=(11.5, 4.0))
    _rank_panel(axes[0], metrics, "soft_rank", TAU)
    axes[0].set(ylabel=r"mean of rank$_{1/2}(H_\ell)$", title="soft rank, averaged over depth")
    _rank_panel(axes[1], metrics, "rank_bound", 0.0)
    axes[1].set(ylabel=r"mean of $r(H_\ell)$", title=r"its lower bound $r = d^2 / \|M\|_F^2$")
    _legend(picture, axes[0], more=_ratio_panel(axes[2], metrics), ncols=8)
    columns = ["skip", "width", *RANKS, "regularity", "autocorrelation", "layers"]
    return picture, metrics[columns]


@figure(
    "rank-laws",
    caption=over_layers(
        "Left: the soft rank, averaged over {layers} of chains, over that of Gaussian weights, for"
        " weights of bounded support and γ = ∞. Right: the soft rank for γ at and below 1 / (8 d),"
        " uniform and Rademacher weights at d = 8 set to the sides, beside that of γ = ∞ and the"
        f" root of d. Points are means, {ERRORS}."
    ),
)
def draw_laws(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The soft rank for laws of bounded support over that of Gaussian weights; and for gamma at and
    below 1 / (8 d)."""
    metrics = averages(tables)
    picture, (left, right) = subplots(1, 2, size=(8.4, 4.0))
    gaussian = metrics[(metrics["law"] == "gaussian") & ~in_lemma_5(metrics)]
    other = metrics[(metrics["law"] != "gaussian") & ~in_lemma_5(metrics)]
    both = other.merge(gaussian, on=["width", "skip"], suffixes=("", "_gaussian"))
    for (law, skip), rows in both.groupby(["law", "skip"]):
        ratio = rows["soft_rank"] / rows["soft_rank_gaussian"]
        relative = [
            rows[f"soft_rank_se{end}"] / rows[f"soft_rank{end}"] for end in ("", "_gaussian")
        ]
        style = looks.LAWS[law].both | {"label": f"{law}, {gamma(skip)}"}
        left.errorbar(rows["width"], ratio, 2 * ratio * np.hypot(*relative), **style)
    left.axhline(1, **_reference())
    left.set(
        ylabel=r"mean of rank$_{1/2}$ over that of Gaussian weights", title="law of the weights"
    )
    _small_gammas(right, metrics)
    without = gaussian[np.isinf(gaussian["skip"])]
    label = f"gaussian, {gamma(inf)}"
    right.plot(without["width"], without["soft_rank"], label=label, **guide(linestyle=SOLID))
    d = np.array(sorted(metrics["width"].unique()))
    right.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **_reference())
    right.set(ylabel=r"mean of rank$_{1/2}(H_\ell)$", title=r"$\gamma$ at and below 1 / (8 d)")
    _rank_axis(right)
    for axes in (left, right):
        _width_axis(axes, metrics["width"])
    _legend(picture, left, right, ncols=4)
    return picture, metrics[["law", "skip", "width", *RANKS, "regularity", "layers"]]


ASIDE = {"uniform": 0.94, "rademacher": 1.06}
"""Factors of the width by which laws that are alike are told apart."""


def _small_gammas(axes: Axes, metrics: pd.DataFrame) -> None:
    """The soft rank against d where gamma is at 1 / (8 d), or below: large and hollow."""
    small = metrics[in_lemma_5(metrics)]
    small = small.assign(eighths=(1 / (small["skip"] * small["width"])).round())
    for (law, eighths), rows in small.groupby(["law", "eighths"]):
        style = looks.LAWS[law].both | {"label": f"{law}, γ = 1 / ({eighths:g} d)"}
        if eighths != 8:
            style |= {"fillstyle": "none", "markersize": points(9)}
        place = rows["width"] * ASIDE.get(law, 1.0)
        axes.errorbar(place, rows["soft_rank"], 2 * rows["soft_rank_se"], **style)


@figure(
    "rank-wide",
    caption=over_layers(
        "Left: soft rank and its lower bound r, averaged over {layers} of chains, over the root of"
        f" d; points are means, {ERRORS}. Right: the exponent in d between two neighbouring widths;"
        " dashed: a half."
    ),
)
def draw_wide(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Up to d = 1024: soft rank and r over sqrt(d), and the exponent in d between two widths."""
    metrics = averages(tables)
    picture, (left, right) = subplots(1, 2, size=(8.4, 3.9))
    both = _ratio_panel(left, metrics)
    for skip, rows in metrics.groupby("skip"):
        d = np.log2(rows["width"].to_numpy())
        for column, (dashes, _) in BOTH.items():
            exponent = np.diff(np.log2(rows[column])) / np.diff(d)
            label = gamma(skip) if dashes == SOLID else None
            between = 2 ** ((d[1:] + d[:-1]) / 2)
            right.plot(between, exponent, label=label, **_style(skip) | {"linestyle": dashes})
    right.axhline(0.5, **_reference())
    left.set_title(r"rank$_{1/2}$ and r over $\sqrt{d}$")
    right.set(ylabel="exponent in d", title="exponent between two widths")
    _width_axis(right, metrics["width"])
    _legend(picture, right, more=both)
    return picture, metrics[["skip", "width", *RANKS, "layers"]]


@figure(
    "rank-fig8",
    caption=over_layers(
        "Regularity constant α of the invariant law, a panel for each γ. Points are averages over"
        f" {{layers}} of chains, {ERRORS}. Dashed: 0.9; dotted: d = 10, from which on the paper"
        " finds α below that."
    ),
)
def draw_fig8(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 8: the regularity constant alpha against d, a panel for each gamma."""
    metrics = averages(tables)
    skips = paper_skips(metrics)
    size = (3.9 * len(skips), 3.3)
    picture, axes = subplots(1, len(skips), size=size, sharey=True, squeeze=False)
    for panel, skip in zip(axes[0], skips, strict=True):
        rows = metrics[metrics["skip"] == skip]
        error = 2 * rows["regularity_se"]
        panel.errorbar(rows["width"], rows["regularity"], error, **_style(skip))
        panel.axhline(0.9, **_reference())
        panel.axvline(10, **guide())
        panel.annotate(" d = 10", (10, 0.02), xycoords=("data", "axes fraction"), color="grey")
        _width_axis(panel, rows["width"])
        panel.set_title(gamma(skip))
    axes[0, 0].set_ylabel(r"regularity constant $\alpha$")
    drawn = metrics[metrics["skip"].isin(skips)]
    return picture, drawn[["skip", "width", "regularity", "regularity_se", "layers"]]


def say_fig9(tables: Tables) -> str:
    """Panels, bars and guides of figure 9, and the slopes."""
    metrics = averages(tables)
    shown = metrics[metrics["skip"].isin(paper_skips(metrics))]
    text = (
        "Mean of the squared norm of M over {layers} of chains, a panel for each γ, with the"
        " 1.5th power of d (dashed) and the upper bound of Lemma 13 (dotted); in the last panel"
        f" over the 1.5th power of d. Points are means, {ERRORS}. Fitted slopes:"
        f" {_exponents(shown, 'frobenius')}."
    )
    return over_layers(text)(tables)


@figure("rank-fig9", caption=say_fig9)
def draw_fig9(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 9: log2 E||M||_F^2 against log2 d for each gamma, and its ratio to d^1.5."""
    metrics = averages(tables)
    skips = paper_skips(metrics)
    picture, axes = subplots(1, len(skips) + 1, size=(3.5 * (len(skips) + 1), 3.6))
    for panel, skip in zip(axes, skips, strict=False):
        rows = metrics[metrics["skip"] == skip]
        x, y = np.log2(rows["width"]), np.log2(rows["frobenius"])
        panel.plot(x, y, label=gamma(skip), **_style(skip))
        panel.plot(x, 1.5 * x, label=r"$d^{1.5}$", **_reference())
        panel.plot(x, np.log2(norm_bound(rows)), label="Lemma 13", **guide())
        panel.set(xlabel=r"$\log_2 d$", title=gamma(skip))
        ratio = rows["frobenius"] / rows["width"] ** 1.5
        error = 2 * rows["frobenius_se"] / rows["width"] ** 1.5
        axes[-1].errorbar(rows["width"], ratio, error, **_style(skip))
    axes[0].set_ylabel(r"$\log_2$ of the mean of $\|M\|_F^2$")
    axes[-1].axhline(1, **_reference())
    axes[-1].set(ylabel=r"mean of $\|M\|_F^2\,/\,d^{1.5}$", title=r"over $d^{1.5}$")
    _width_axis(axes[-1], metrics["width"])
    _legend(picture, *axes[:-1])
    drawn = metrics[metrics["skip"].isin(skips)]
    return picture, drawn[["skip", "width", "frobenius", "frobenius_se", "regularity", "layers"]]


def mean_spectrum(tables: Tables) -> pd.DataFrame:
    """The singular values by gamma, layer and index, averaged over chains."""
    keys = ["width", "skip", "layer", "index"]
    return tables["spectrum"].groupby(keys, as_index=False)["singular_value"].mean()


@figure(
    "rank-fig3b",
    caption="The ten largest singular values of the hidden layers, from nearly collinear inputs, a"
    " panel for each γ. Lines are means over the chains, the darker the larger the value.",
)
def draw_fig3b(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3b: the top ten singular values by layer from nearly collinear inputs."""
    spectrum = mean_spectrum(tables)
    skips = sorted(spectrum["skip"].unique())
    size = (3.9 * len(skips), 3.5)
    picture, axes = subplots(1, len(skips), size=size, sharey=True, squeeze=False)
    colors = shades(sorted(spectrum["index"].unique()), last=0.9)
    for panel, skip in zip(axes[0], skips, strict=True):
        for index, rows in spectrum[spectrum["skip"] == skip].groupby("index"):
            line = {"color": colors[index], "label": f"{index}"}
            panel.plot(rows["layer"], rows["singular_value"], **line)
        panel.set(yscale="log", xlabel=r"layer $\ell$", title=gamma(skip))
    axes[0, 0].set_ylabel(r"$\sigma_i(H_\ell)\,/\,\sqrt{N}$")
    axes[0, -1].legend(title="i", bbox_to_anchor=(1.0, 1.02), loc="upper left", handlelength=1.2)
    return picture, spectrum


@figure(
    "rank-lemma3",
    caption="Left: logarithm of the second singular value over the first, without normalisation;"
    " lines are means over the chains, faint lines single chains, and black dashed lines have the"
    " slope that the Lyapunov exponents of Gaussian weights promise. Right: how far the normalised"
    " matrix moves in a layer, mean over the chains.",
)
def draw_lemma3(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 3: log(sigma_2 / sigma_1) without normalisation, and how far H~ moves in a layer."""
    products = tables["products"]
    keys = ["width", "skip", "law", "layer"]
    means = ["log_ratio", "step_length", "gap"]
    drawn = products.groupby(keys, as_index=False)[means].mean()
    picture, (ratios, steps) = subplots(1, 2, size=(8.4, 3.9))
    _chains(ratios, products)
    for (skip, law), rows in drawn.groupby(["skip", "law"]):
        is_gaussian, every = law == "gaussian", max(1, len(rows) // 5)
        style = {"color": looks.skip(skip).color, "label": f"{gamma(skip)}, {law}"}
        style |= {"marker": looks.LAWS[law].marker, "linestyle": SOLID if is_gaussian else DOTTED}
        style |= {"markevery": (0 if is_gaussian else every // 2, every)}
        ratios.plot(rows["layer"], rows["log_ratio"], **style)
        steps.plot(rows["layer"], rows["step_length"], **style | {"linewidth": points(1.0)})
    for number, (_, rows) in enumerate(drawn[drawn["law"] == "gaussian"].groupby("skip")):
        label = r"slope $\lambda_2 - \lambda_1$, gaussian" if number == 0 else None
        ratios.plot(rows["layer"], -rows["gap"] * rows["layer"], label=label, **_reference())
    ratios.set(
        xlabel=r"layer $\ell$", ylabel=r"$\log\,\sigma_2 / \sigma_1$ of $\widetilde{H}_\ell$"
    )
    ylabel = r"$\|\widetilde{H}_\ell - \widetilde{H}_{\ell-1}\|_F$"
    steps.set(xlabel=r"layer $\ell$", ylabel=ylabel, ylim=(0, None))
    _legend(picture, ratios, ncols=3)
    return picture, drawn


def _chains(axes: Axes, products: pd.DataFrame) -> None:
    """Every chain as a faint line."""
    faint = {"alpha": 0.08, "linewidth": points(0.6), "rasterized": True}
    for (skip, _, _), chain in products.groupby(["skip", "law", "replicate"]):
        axes.plot(chain["layer"], chain["log_ratio"], color=looks.skip(skip).color, **faint)


def _matrix_style(width: int, law: str, widths: list[int]) -> dict:
    """Shade and marker by width; Gaussian weights large and hollow, others small and filled."""
    style = ordered(sorted(widths))[width].both | {"label": f"d = {width}, {law}"}
    if law == "gaussian":
        return style | {"markersize": points(8), "fillstyle": "none", "linestyle": SOLID}
    return style | {"markersize": points(3.5), "linestyle": DOTTED}


@figure(
    "rank-lemma7",
    caption="Left: change of the squared norm of M over one layer against what Lemma 7 says, at the"
    " smallest γ; every point is a matrix, bars are two standard errors of its mean change. Right:"
    " root mean square over the matrices of what the lemma leaves over, against γ, with the powers"
    " one (dotted) and two (dashed) of γ.",
)
def draw_lemma7(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 7: the measured change against delta_F at the smallest gamma; what is left over."""
    expansions = tables["expansions"]
    widths = list(expansions["width"].unique())
    smallest = expansions[expansions["skip"] == expansions["skip"].min()]
    picture, axes = subplots(1, 2, size=(8.4, 4.0))
    for (width, law), rows in smallest.groupby(["width", "law"]):
        x, y, error = (rows[name] / width**2 for name in ("predicted", "change", "change_se"))
        style = _matrix_style(width, law, widths) | {"linestyle": "none"}
        axes[0].errorbar(x, y, 2 * error, **style)
    span = np.array(axes[0].get_xlim())
    axes[0].plot(span, span, label="equal", **_reference(zorder=0))
    axes[0].set(xlabel=r"$\delta_F(M)\,/\,d^2$  (Lemma 7)", title=gamma(smallest["skip"].iloc[0]))
    axes[0].set_ylabel(r"$(E\|M_+\|_F^2 - \|M\|_F^2)\,/\,(\gamma d)^2$")
    drawn = smallest[["width", "law", "replicate", "skip", "predicted", "change", "change_se"]]
    with or_empty(axes[1]):
        drawn = remainders(tables)
        _remainder_panel(axes[1], drawn, widths)
    _legend(picture, *axes, ncols=3)
    return picture, drawn


def _remainder_panel(axes: Axes, left: pd.DataFrame, widths: list[int]) -> None:
    """What Lemma 7 leaves over against gamma, with the slopes one and two."""
    for (width, law), rows in left.groupby(["width", "law"]):
        style = _matrix_style(width, law, widths) | {"linewidth": points(1.0), "label": None}
        axes.plot(rows["skip"], rows["remainder"], **style)
    ends = left["skip"].min() * np.array([1, 10])
    height = left["remainder"].min() / 2
    axes.plot(ends, height * np.array([1, 100]), label=r"$\propto \gamma^2$", **_reference())
    axes.plot(ends, height * np.array([1, 10]), label=r"$\propto \gamma$", **guide())
    axes.set(xscale="log", yscale="log", xlabel="γ", title="what is left over")
    axes.set_ylabel(r"rms remainder $/\,d^2$")


def _live_panel(axes: Axes, live: pd.DataFrame) -> None:
    """k* against d for every gamma, with the range in which its error leaves it."""
    for skip, rows in live.groupby("skip"):
        error = [rows["k_star"] - rows["k_star_low"], rows["k_star_high"] - rows["k_star"]]
        style = _style(skip) | {"label": gamma(skip), "capsize": 3}
        axes.errorbar(rows["width"], rows["k_star"], error, **style)
    d = np.array(sorted(live["width"].unique()))
    axes.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **_reference())
    _rank_axis(axes)
    axes.set(ylabel="live directions k*", title="number of live directions")
    _width_axis(axes, live["width"])


def say_live(tables: Tables) -> str:
    """Panels, bars and exponents of the figure of live directions."""
    shown = gamma(tables["input_ranks"]["skip"].max())
    return (
        f"Left: at {shown}, the rate at which one more direction grows when the input has rank k;"
        " where it is negative, a law of that rank is stable. Middle: the number k* of live"
        " directions; bars are where the error of that rate leaves it. Right: at"
        f" {shown}, the soft rank in which inputs of rank k end, averaged over the layers; crosses:"
        f" k*. In the outer panels {ERRORS}. Fitted powers of d of k*:"
        f" {_exponents(live_directions(tables), 'k_star')}."
    )


@figure("rank-live", caption=say_live)
def draw_live(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Beyond the paper: stability of the laws of low rank, k*, and where each input rank ends."""
    ranks = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    live = live_directions(tables)
    shown = ranks["skip"].max()
    picture, axes = subplots(1, 3, size=(11.5, 3.9))
    _live_panel(axes[1], live)
    groups = ranks[ranks["skip"] == shown].groupby("width")
    by_width = ordered(groups.groups)
    for width, rows in groups:
        style = by_width[width].both | {"label": f"d = {width}", "linestyle": SOLID}
        style |= {"markersize": points(3.5)}
        k = rows["input_rank"]
        axes[0].errorbar(k / np.sqrt(width), rows["exponent"], 2 * rows["exponent_se"], **style)
        axes[2].errorbar(k, rows["soft_rank"], 2 * rows["soft_rank_se"], **style)
    stars = live.merge(ranks, left_on=["skip", "width", "k_star"], right_on=RANK_KEYS)
    stars = stars[stars["skip"] == shown]
    cross = {"color": BLACK, "markersize": points(7), "markeredgewidth": points(1.4)}
    axes[2].plot(stars["k_star"], stars["soft_rank"], "x", label="k*", zorder=5, **cross)
    axes[0].axhline(0, **_reference())
    axes[0].set(xlabel=r"rank of the input $k\,/\,\sqrt{d}$", ylim=(-0.45, 0.75), xlim=(0.3, None))
    axes[0].set_ylabel("growth of one more direction\n(nats a layer)")
    axes[0].set_title(f"{gamma(shown)}: stable where negative")
    axes[2].set(xlabel="rank of the input k", ylabel=r"mean of rank$_{1/2}$", title=gamma(shown))
    _legend(picture, axes[2], axes[1], ncols=8)
    columns = ["soft_rank", "soft_rank_se", "exponent", "exponent_se"]
    return picture, ranks[[*RANK_KEYS, *columns]].merge(live, on=["skip", "width"])


@overview
def overview_rank_chain(tables: Tables) -> tuple[Figure, pd.DataFrame]:
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
