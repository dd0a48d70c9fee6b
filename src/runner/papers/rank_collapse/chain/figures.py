"""Drawings of study `rank_chain`: Figures 3a, 3b, 8, 9, Lemmas 3 and 7, live directions."""

from math import inf, isinf

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview

COLORS = {0.1: "tab:blue", 0.5: "tab:green", 1.0: "tab:orange", inf: "tab:red"}
MARKERS = {0.1: "o", 0.5: "s", 1.0: "^", inf: "D"}
LAWS = {
    "gaussian": {"color": "tab:red", "marker": "D", "markersize": 4},
    "uniform": {"color": "tab:blue", "marker": "s", "markersize": 5},
    "rademacher": {"color": "tab:green", "marker": "^", "markersize": 5},
}
RANKS = [
    "soft_rank",
    "soft_rank_se",
    "soft_rank_sd",
    "rank_bound",
    "rank_bound_se",
    "rank_bound_sd",
]
REFERENCE = {"color": "black", "linestyle": "--", "linewidth": 1.1}
BOUND = {"color": "grey", "linestyle": ":", "linewidth": 1.4}


def _style(skip: float) -> dict:
    """Colour and marker of a gamma; nested open markers, because the curves nearly coincide."""
    size = {0.1: 8, 0.5: 6.5, 1.0: 5, inf: 3}.get(skip, 4.5)
    face = "full" if isinf(skip) else "none"
    style = {"color": COLORS.get(skip, "tab:purple"), "marker": MARKERS.get(skip, "v")}
    return style | {"markersize": size, "fillstyle": face, "linewidth": 1.2}


def _exponent(rows: pd.DataFrame, column: str) -> str:
    """The fitted power of d as the end of a label; nothing where there is none."""
    power = power_law(rows["width"], rows[column])[0]
    return f",  $d^{{{power:.2f}}}$" if np.isfinite(power) else ""


def _width_axis(axes: Axes, widths: pd.Series) -> None:
    ticks = sorted(d for d in set(widths) if np.log2(d) % 1 == 0) or sorted(set(widths))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(d) for d in ticks])
    axes.minorticks_off()
    axes.set_xlabel("width d")


def _rank_panel(axes: Axes, metrics: pd.DataFrame, column: str, tau: float) -> None:
    """One of the two ranks against d for every gamma, with sqrt(d) and Theorem 14's bound."""
    for skip, rows in metrics.groupby("skip"):
        error = 2 * rows[f"{column}_se"]
        label = gamma(skip) + _exponent(rows, column)
        axes.errorbar(rows["width"], rows[column], error, label=label, **_style(skip))
        if isinf(skip):  # the others have nearly the same
            spread = [rows[column] + side * rows[f"{column}_sd"] for side in (-1, 1)]
            color = _style(skip)["color"]
            axes.fill_between(rows["width"], *spread, color=color, alpha=0.12, lw=0)
    d = np.array(sorted(metrics["width"].unique()))
    alpha = metrics.groupby("width")["regularity"].max().loc[d]
    bound = rank_bound(alpha.reset_index(), tau)
    axes.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **REFERENCE)
    axes.plot(d, bound, label="Theorem 14", **BOUND)
    axes.set_yscale("log", base=2)
    if np.isfinite(bound.min()):
        axes.set_ylim(bottom=bound.min() / 8)
    axes.yaxis.set_major_formatter("{x:g}")
    _width_axis(axes, metrics["width"])
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[2:] + handles[:2], labels[2:] + labels[:2], loc="lower right")


@figure("rank-fig3a")
def draw_fig3a(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3a: the soft rank against d; beside it r, and both over sqrt(d).

    The band is a standard deviation over depth to either side, without skips.
    """
    metrics = averages(tables)
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.8))
    _rank_panel(axes[0], metrics, "soft_rank", TAU)
    axes[0].set(ylabel=r"mean of rank$_{1/2}(H_\ell)$", title="soft rank, averaged over depth")
    _rank_panel(axes[1], metrics, "rank_bound", 0.0)
    axes[1].set(ylabel=r"mean of $r(H_\ell)$", title=r"its lower bound $r = d^2 / \|M\|_F^2$")
    for skip, rows in metrics.groupby("skip"):
        root = np.sqrt(rows["width"])
        for column, line in (("soft_rank", "-"), ("rank_bound", ":")):
            ratio, error = rows[column] / root, 2 * rows[f"{column}_se"] / root
            axes[2].errorbar(rows["width"], ratio, error, linestyle=line, **_style(skip))
    axes[2].plot([], [], "k-", label=r"rank$_{1/2}$")
    axes[2].plot([], [], "k:", label="r")
    axes[2].axhline(1, **REFERENCE)
    axes[2].set(title=r"both over $\sqrt{d}$")
    _width_axis(axes[2], metrics["width"])
    axes[2].legend()
    return figure, metrics[["skip", "width", *RANKS, "regularity", "autocorrelation", "layers"]]


@figure("rank-laws")
def draw_laws(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The soft rank for laws of bounded support over that of Gaussian weights; and for gamma at and
    below 1 / (8 d)."""
    metrics = averages(tables)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6))
    gaussian = metrics[(metrics["law"] == "gaussian") & ~in_lemma_5(metrics)]
    other = metrics[(metrics["law"] != "gaussian") & ~in_lemma_5(metrics)]
    both = other.merge(gaussian, on=["width", "skip"], suffixes=("", "_gaussian"))
    for (law, skip), rows in both.groupby(["law", "skip"]):
        ratio = rows["soft_rank"] / rows["soft_rank_gaussian"]
        relative = [
            rows[f"soft_rank_se{end}"] / rows[f"soft_rank{end}"] for end in ("", "_gaussian")
        ]
        label = f"{law}, {gamma(skip)}"
        left.errorbar(
            rows["width"], ratio, 2 * ratio * np.hypot(*relative), label=label, **LAWS[law]
        )
    left.axhline(1, **REFERENCE)
    left.set(
        ylabel=r"mean of rank$_{1/2}$ over that of Gaussian weights", title="law of the weights"
    )
    small = metrics[in_lemma_5(metrics)]
    small = small.assign(eighths=(1 / (small["skip"] * small["width"])).round())
    for (law, eighths), rows in small.groupby(["law", "eighths"]):
        label = f"{law}, γ = 1 / ({eighths:g} d)"
        style = LAWS[law] | ({} if eighths == 8 else {"fillstyle": "none", "markersize": 9})
        right.errorbar(
            rows["width"], rows["soft_rank"], 2 * rows["soft_rank_se"], label=label, **style
        )
    without = gaussian[np.isinf(gaussian["skip"])]
    label = f"gaussian, {gamma(inf)}"
    right.plot(without["width"], without["soft_rank"], label=label, color="grey", linewidth=1.2)
    d = np.array(sorted(metrics["width"].unique()))
    right.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **REFERENCE)
    right.set(ylabel=r"mean of rank$_{1/2}(H_\ell)$", title=r"$\gamma$ at and below 1 / (8 d)")
    right.set_yscale("log", base=2)
    right.yaxis.set_major_formatter("{x:g}")
    for axes in (left, right):
        _width_axis(axes, metrics["width"])
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    return figure, metrics[["law", "skip", "width", *RANKS, "regularity", "layers"]]


@figure("rank-wide")
def draw_wide(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Up to d = 1024: soft rank and r over sqrt(d), and the exponent in d between two widths."""
    metrics = averages(tables)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6))
    for skip, rows in metrics.groupby("skip"):
        root, d = np.sqrt(rows["width"]), np.log2(rows["width"].to_numpy())
        for column, line in (("soft_rank", "-"), ("rank_bound", ":")):
            ratio, error = rows[column] / root, 2 * rows[f"{column}_se"] / root
            left.errorbar(rows["width"], ratio, error, linestyle=line, **_style(skip))
            exponent = np.diff(np.log2(rows[column])) / np.diff(d)
            label = gamma(skip) if line == "-" else None
            between = 2 ** ((d[1:] + d[:-1]) / 2)
            right.plot(between, exponent, linestyle=line, label=label, **_style(skip))
    left.axhline(1, **REFERENCE)
    left.plot([], [], "k-", label=r"rank$_{1/2}$")
    left.plot([], [], "k:", label="r")
    left.set(title=r"over $\sqrt{d}$")
    right.axhline(0.5, **REFERENCE)
    right.set(title="exponent in d between two widths")
    for axes in (left, right):
        _width_axis(axes, metrics["width"])
        axes.legend()
    return figure, metrics[["skip", "width", *RANKS, "layers"]]


@figure("rank-fig8")
def draw_fig8(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 8: the regularity constant alpha against d, a panel for each gamma."""
    metrics = averages(tables)
    skips = paper_skips(metrics)
    figure, axes = plt.subplots(
        1, len(skips), figsize=(3.9 * len(skips), 3.3), sharey=True, squeeze=False
    )
    for panel, skip in zip(axes[0], skips, strict=True):
        rows = metrics[metrics["skip"] == skip]
        error = 2 * rows["regularity_se"]
        panel.errorbar(rows["width"], rows["regularity"], error, **_style(skip))
        panel.axhline(0.9, **REFERENCE)
        panel.axvline(10, **BOUND)
        panel.annotate(" d = 10", (10, 0.02), xycoords=("data", "axes fraction"), color="grey")
        _width_axis(panel, rows["width"])
        panel.set_title(gamma(skip))
    axes[0, 0].set_ylabel(r"regularity constant $\alpha$")
    drawn = metrics[metrics["skip"].isin(skips)]
    return figure, drawn[["skip", "width", "regularity", "regularity_se", "layers"]]


@figure("rank-fig9")
def draw_fig9(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 9: log2 E||M||_F^2 against log2 d for each gamma, and its ratio to d^1.5."""
    metrics = averages(tables)
    skips = paper_skips(metrics)
    figure, axes = plt.subplots(1, len(skips) + 1, figsize=(3.5 * (len(skips) + 1), 3.4))
    for panel, skip in zip(axes, skips, strict=False):
        rows = metrics[metrics["skip"] == skip]
        x, y = np.log2(rows["width"]), np.log2(rows["frobenius"])
        label = gamma(skip)
        slope = power_law(rows["width"], rows["frobenius"])[0]
        if np.isfinite(slope):
            label += f",  slope {slope:.2f}"
        panel.plot(x, y, label=label, **_style(skip))
        panel.plot(x, 1.5 * x, label=r"$d^{1.5}$", **REFERENCE | {"color": "tab:green"})
        panel.plot(x, np.log2(norm_bound(rows)), label="Lemma 13", **BOUND)
        panel.set(xlabel=r"$\log_2 d$", ylabel=r"$\log_2$ of the mean of $\|M\|_F^2$")
        panel.legend()
        ratio = rows["frobenius"] / rows["width"] ** 1.5
        error = 2 * rows["frobenius_se"] / rows["width"] ** 1.5
        axes[-1].errorbar(rows["width"], ratio, error, label=gamma(skip), **_style(skip))
    axes[-1].axhline(1, **REFERENCE | {"color": "tab:green"})
    axes[-1].set_ylabel(r"mean of $\|M\|_F^2\,/\,d^{1.5}$")
    _width_axis(axes[-1], metrics["width"])
    axes[-1].legend()
    drawn = metrics[metrics["skip"].isin(skips)]
    return figure, drawn[["skip", "width", "frobenius", "frobenius_se", "regularity", "layers"]]


def mean_spectrum(tables: Tables) -> pd.DataFrame:
    """The singular values by gamma, layer and index, averaged over chains."""
    keys = ["width", "skip", "layer", "index"]
    return tables["spectrum"].groupby(keys, as_index=False)["singular_value"].mean()


@figure("rank-fig3b")
def draw_fig3b(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3b: the top ten singular values by layer from nearly collinear inputs."""
    spectrum = mean_spectrum(tables)
    skips = sorted(spectrum["skip"].unique())
    figure, axes = plt.subplots(
        1, len(skips), figsize=(3.9 * len(skips), 3.5), sharey=True, squeeze=False
    )
    colors = plt.get_cmap("viridis")
    for panel, skip in zip(axes[0], skips, strict=True):
        for index, rows in spectrum[spectrum["skip"] == skip].groupby("index"):
            color = colors((index - 1) / spectrum["index"].max())
            panel.plot(rows["layer"], rows["singular_value"], color=color, label=f"{index}")
        panel.set(yscale="log", xlabel=r"layer $\ell$", title=gamma(skip))
    axes[0, 0].set_ylabel(r"$\sigma_i(H_\ell)\,/\,\sqrt{N}$")
    axes[0, -1].legend(title="i", bbox_to_anchor=(1.0, 1.02), loc="upper left", handlelength=1.2)
    return figure, spectrum


@figure("rank-lemma3")
def draw_lemma3(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 3: log(sigma_2 / sigma_1) without normalisation, and how far H~ moves in a layer."""
    products = tables["products"]
    keys = ["width", "skip", "law", "layer"]
    means = ["log_ratio", "step_length", "gap"]
    drawn = products.groupby(keys, as_index=False)[means].mean()
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5))
    for (skip, law), rows in drawn.groupby(["skip", "law"]):
        style = {"color": COLORS.get(skip, "tab:purple"), "label": f"{gamma(skip)}, {law}"}
        style["linestyle"] = "-" if law == "gaussian" else (0, (4, 2))
        axes[0].plot(rows["layer"], rows["log_ratio"], **style)
        axes[1].plot(rows["layer"], rows["step_length"], **style | {"linewidth": 1.0})
    for (_, _), rows in products.groupby(["skip", "law"]):
        for _, chain in rows.groupby("replicate"):
            color = COLORS.get(chain["skip"].iloc[0], "tab:purple")
            axes[0].plot(
                chain["layer"],
                chain["log_ratio"],
                color=color,
                alpha=0.08,
                linewidth=0.6,
                rasterized=True,
            )
    for number, (_, rows) in enumerate(drawn[drawn["law"] == "gaussian"].groupby("skip")):
        label = r"slope $\lambda_2 - \lambda_1$, Gaussian" if number == 0 else None
        axes[0].plot(rows["layer"], -rows["gap"] * rows["layer"], label=label, **REFERENCE)
    axes[0].set(
        xlabel=r"layer $\ell$", ylabel=r"$\log\,\sigma_2 / \sigma_1$ of $\widetilde{H}_\ell$"
    )
    axes[0].legend(loc="lower left")
    ylabel = r"$\|\widetilde{H}_\ell - \widetilde{H}_{\ell-1}\|_F$"
    axes[1].set(xlabel=r"layer $\ell$", ylabel=ylabel, ylim=(0, None))
    return figure, drawn


def _matrix_style(width: int, law: str, widths: list[int]) -> dict:
    """Colour by width; Gaussian weights open circles, others filled squares."""
    style = {"color": f"C{sorted(widths).index(width)}", "label": f"d = {width}, {law}"}
    if law == "gaussian":
        return style | {"marker": "o", "markersize": 8, "fillstyle": "none"}
    return style | {"marker": "s", "markersize": 3.5}


@figure("rank-lemma7")
def draw_lemma7(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Lemma 7: the measured change against delta_F at the smallest gamma; what is left over."""
    expansions = tables["expansions"]
    widths = list(expansions["width"].unique())
    smallest = expansions[expansions["skip"] == expansions["skip"].min()]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.6))
    for (width, law), rows in smallest.groupby(["width", "law"]):
        x, y, error = (rows[name] / width**2 for name in ("predicted", "change", "change_se"))
        style = {"linestyle": "none", **_matrix_style(width, law, widths)}
        axes[0].errorbar(x, y, 2 * error, **style)
    span = np.array(axes[0].get_xlim())
    axes[0].plot(span, span, label="equal", **REFERENCE)
    axes[0].set(xlabel=r"$\delta_F(M)\,/\,d^2$  (Lemma 7)", title=gamma(smallest["skip"].iloc[0]))
    axes[0].set_ylabel(r"$(E\|M_+\|_F^2 - \|M\|_F^2)\,/\,(\gamma d)^2$")
    axes[0].legend()
    drawn = smallest[["width", "law", "replicate", "skip", "predicted", "change", "change_se"]]
    with or_empty(axes[1]):
        drawn = remainders(tables)
        _remainder_panel(axes[1], drawn, widths)
    return figure, drawn


def _remainder_panel(axes: Axes, left: pd.DataFrame, widths: list[int]) -> None:
    """What Lemma 7 leaves over against gamma, with the slopes one and two."""
    for (width, law), rows in left.groupby(["width", "law"]):
        style = _matrix_style(width, law, widths) | {"linewidth": 1.0, "label": None}
        axes.plot(rows["skip"], rows["remainder"], **style)
    guide = left["skip"].min() * np.array([1, 10])
    height = left["remainder"].min() / 2
    axes.plot(guide, height * np.array([1, 100]), label=r"$\propto \gamma^2$", **REFERENCE)
    axes.plot(guide, height * np.array([1, 10]), label=r"$\propto \gamma$", **BOUND)
    axes.legend()
    axes.set(xscale="log", yscale="log", xlabel="γ", title="what is left over")
    axes.set_ylabel(r"rms remainder $/\,d^2$")


def _live_panel(axes: Axes, live: pd.DataFrame) -> None:
    """k* against d for every gamma, with the range in which its error leaves it."""
    for skip, rows in live.groupby("skip"):
        error = [rows["k_star"] - rows["k_star_low"], rows["k_star_high"] - rows["k_star"]]
        label = gamma(skip) + _exponent(rows, "k_star")
        axes.errorbar(rows["width"], rows["k_star"], error, label=label, capsize=3, **_style(skip))
    d = np.array(sorted(live["width"].unique()))
    axes.plot(d, np.sqrt(d), label=r"$\sqrt{d}$", **REFERENCE)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(ylabel="live directions k*", title="number of live directions")
    _width_axis(axes, live["width"])
    axes.legend()


@figure("rank-live")
def draw_live(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Beyond the paper: stability of the laws of low rank, k*, and where each input rank ends."""
    ranks = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    live = live_directions(tables)
    shown = ranks["skip"].max()
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.6))
    _live_panel(axes[1], live)
    shades = plt.get_cmap("viridis")
    groups = ranks[ranks["skip"] == shown].groupby("width")
    for number, (width, rows) in enumerate(groups):
        style = {"color": shades(number / len(groups)), "label": f"d = {width}", "marker": "."}
        k = rows["input_rank"]
        axes[0].errorbar(k / np.sqrt(width), rows["exponent"], 2 * rows["exponent_se"], **style)
        axes[2].errorbar(k, rows["soft_rank"], 2 * rows["soft_rank_se"], **style)
    stars = live.merge(ranks, left_on=["skip", "width", "k_star"], right_on=RANK_KEYS)
    stars = stars[stars["skip"] == shown]
    axes[2].plot(stars["k_star"], stars["soft_rank"], "kx", label="k*", zorder=5)
    axes[0].axhline(0, **REFERENCE)
    axes[0].set(xlabel=r"rank of the input $k\,/\,\sqrt{d}$", ylim=(-0.45, 0.75), xlim=(0.3, None))
    axes[0].set_ylabel("growth of one more direction (nats a layer)")
    axes[0].set_title(f"{gamma(shown)}: stable where negative")
    axes[0].legend()
    axes[2].set(xlabel="rank of the input k", ylabel=r"mean of rank$_{1/2}$", title=gamma(shown))
    axes[2].legend()
    columns = ["soft_rank", "soft_rank_se", "exponent", "exponent_se"]
    return figure, ranks[[*RANK_KEYS, *columns]].merge(live, on=["skip", "width"])


@overview
def overview_rank_chain(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the drawing that goes with what it measured."""
    for table, drawing in OVERVIEW_OF.items():
        if table in tables:
            figure, drawn = drawing(tables)
            return figure, drawn if len(drawn) <= 40 else drawn.iloc[:: len(drawn) // 20]
    raise KeyError(f"none of {', '.join(OVERVIEW_OF)} among {', '.join(tables)}")


OVERVIEW_OF = {
    "metrics": draw_fig3a,
    "spectrum": draw_fig3b,
    "products": draw_lemma3,
    "expansions": draw_lemma7,
    "input_ranks": draw_live,
}
