"""The numbers of the tables on docs/paper-b.md, computed from the stored tables.

TABLES has a function for each table, by the table's heading. It returns the numbers of each row, in
their order on the page; the first column, which names the row, has none of them. Numbers are
medians, with smallest and largest value where the page has a range.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from in_memory import judged, kept_tables

from runner.papers.batch_norm_rank.breaking_bn.tables import paths
from runner.papers.batch_norm_rank.learning import least_lead, with_divergence
from runner.papers.batch_norm_rank.pretraining.tables import (
    at_chosen_rates,
    before_training,
    last_epochs,
)
from runner.papers.batch_norm_rank.rank_chain import quantities as chain
from runner.papers.batch_norm_rank.rank_chain.claims import OF_THE_FIGURES, THRESHOLDS
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.papers.batch_norm_rank.rank_gradients.tables import networks as random_networks
from runner.papers.batch_norm_rank.rank_or_size.tables import ARM, networks
from runner.results.quantities import Quantity
from runner.results.rows import last_epoch, select

Rows = list[list[float]]

LIMITS = ["estimate", "low", "high"]
"""Columns of a verdict: the estimate and the limits of the test."""


def spread(values: Iterable[float]) -> list[float]:
    """Return median, smallest and largest value."""
    return [float(f(np.asarray([*values], float))) for f in (np.median, np.min, np.max)]


def of(n: int, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, after a check that they have n networks, as the page says."""
    assert rows["replicate"].nunique() == n
    return rows


def by_depth() -> Rows:
    """Figure 1: means of ranks before training and of the accuracy after it, at six depths."""
    tables = kept_tables("rank-fig1", "paper")
    keys, depths = ["normalization", "depth"], [1, 5, 9, 11, 17, 33]
    before = of(5, rank_of_last_layer(tables["metrics"])).groupby(keys)
    rank, r = before["matrix_rank"].mean(), before["rank_bound"].mean()
    accuracy = of(5, trained(tables)).groupby(keys)["train_accuracy"].mean()
    lines = [rank["none"], r["none"], accuracy["none"], rank["batch"], accuracy["batch"]]
    return [[*line[depths]] for line in lines]


def by_width() -> Rows:
    """Figure 3a: soft rank and r without skip connections, and the root of the width."""
    figures = [kept_tables(figure, "paper")["metrics"] for figure in ("rank-fig3a", "rank-wide")]
    rows = pd.concat(figures).query("skip == inf").drop_duplicates("width").set_index("width")
    widths = [8, 32, 128, 256, 1024]
    return [[*rows["soft_rank"][widths]], [*rows["rank_bound"][widths]], [*np.sqrt(widths)]]


def pretraining() -> Rows:
    """Figure 6: rank, mean r before and after training, accuracy; two rows have its range."""
    tables = kept_tables("rank-fig6", "paper")
    before, after = (of(8, f(tables)).groupby("network") for f in (before_training, last_epochs))
    found = []
    for name in ("vanilla", "M = 5", "M = 75", "batch_norm", "batch_norm_asymmetric"):
        start, end = before.get_group(name), after.get_group(name)
        columns = (start["rank"], start["mean_rank_bound"], end["mean_rank_bound"])
        shown = 3 if name in ("M = 5", "batch_norm_asymmetric") else 1
        found.append([*(c.median() for c in columns), *spread(end["train_accuracy"])[:shown]])
    return found


def initializations() -> Rows:
    """Control 1: rank and r before training, accuracy after it, of seven plain networks."""
    tables = kept_tables("rank-pretraining", "paper")
    key = ["protocol", "network"]
    before = of(8, before_training(tables)).groupby(key)[["rank", "rank_bound"]].median()
    after = of(8, last_epochs(tables)).groupby(key)["train_accuracy"].median()
    shown = [
        ("authors", "vanilla"),
        ("authors", "M = 75"),
        ("authors", "scale_matched"),
        ("text", "M = 75"),
        ("text", "scale_matched"),
        ("authors", "he"),
        ("authors", "orthogonalised_half"),
    ]
    return [[*before.loc[name], after[name]] for name in shown]


def norms() -> Rows:
    """Control 2: rank and r of 32 layers before training, accuracies; four rows have a range."""
    tables = kept_tables("rank-norms", "paper")
    before = of(13, rank_of_last_layer(tables["metrics"]).query("train and depth == 32"))
    after = of(13, trained(tables).query("depth == 32"))
    found = []
    kinds = [(name, "pytorch") for name in ("batch", "layer", "rms", "none")]
    for kind, init in [*kinds, ("none", "he")]:
        start, end = (select(rows, normalization=kind, init=init) for rows in (before, after))
        accuracy = spread(end["train_accuracy"])[: 1 if (kind, init) == kinds[-1] else 3]
        of_start = [start["matrix_rank"].median(), start["rank_bound"].median()]
        found.append([*of_start, *accuracy, end["test_accuracy"].median()])
    return found


FULL = None
"""The level of a construction of rank k at full rank, which is the width."""


def after(epoch: int) -> pd.DataFrame:
    """Return the networks of controls 3 and 4 on Fashion-MNIST after some epochs of training."""
    tables = kept_tables("rank-or-size", "paper")
    chosen = networks(tables)[["run", *ARM, "replicate", "learning_rate"]]
    rows = with_divergence(tables["training"]).merge(chosen, on=[*chosen])
    return select(rows, epoch=epoch)


def _rank_or_size(arms: list[tuple[str, float | None]], *columns: str) -> Rows:
    """Return columns, two accuracies on Fashion-MNIST, and the accuracy on digits.

    The accuracies on Fashion-MNIST are those after two epochs, and in the last one. arms:
    initializations, each a family and a level.
    """
    clothes, digits = (of(8, networks(kept_tables("rank-or-size", s))) for s in ("paper", "quick"))
    measured = [(clothes, column) for column in columns]
    measured += [(rows, "train_accuracy") for rows in (after(2), clothes, digits)]
    found: Rows = []
    for family, level in arms:
        found.append([])
        for rows, column in measured:
            of_family = select(rows, family=family)
            chosen = of_family["level"].max() if level is FULL else level
            found[-1].append(select(of_family, level=chosen)[column].median())
    return found


def sizes() -> Rows:
    """Control 3: rank, r, size, spread and accuracies."""
    falling = [(name, 0.0) for name in ("unscaled", "unscaled_layer_rates", "even")]
    return _rank_or_size(
        [(name, 0.0) for name in ("default_biases", "default_biases_unit", "pixels_255")]
        + [*falling, *(("sized", size) for size in (1e-4, 1e-3, 0.01, 0.1))]
        + [("sized_layer_rates", 0.01), ("sized_layer_rates", 0.1), ("signed", 0.0)]
        + [(name, 0.0) for name in ("pretrained", "pretrained_small", "size_of_pretrained")]
        + [("batch_norm", 0.0)],
        "rank", "rank_bound", "size", "spread",
    )  # fmt: skip


def ranks() -> Rows:
    """Control 4: rank, r − 1, r of the deviations, and accuracies."""
    built = [(name, k) for name in ("product", "copied") for k in (1.0, 4.0, 16.0, FULL)]
    flipped = [("flipped", part) for part in (0.1, 0.25, 0.5)]
    columns = ("rank", "rank_bound", "deviations_bound")
    rows = _rank_or_size([*built, *flipped, ("signed", 0.0)], *columns)
    return [[rank, r - 1, *others] for rank, r, *others in rows]


def losses() -> Rows:
    """Figures 4 and 12: training losses in the last epoch, by depth."""
    key = ["method", "depth"]
    ends = [of(5, last_epochs(kept_tables(f, "paper"))) for f in ("rank-fig4", "rank-fig12")]
    medians = [rows.groupby(key)["train_loss"].median() for rows in ends]
    methods = ("batch_norm", "pretrained", "vanilla")
    return [[part[m, d] for part in medians for d in (8, 16, 32)] for m in methods]


def differences() -> Rows:
    """Figures 4 and 12: differences of mean losses, with the limits of the claims' test."""
    names = ["faster-than-batch-norm", "faster-than-vanilla"]
    found = [judged(f, kept_tables(f, "paper"), *names) for f in ("rank-fig4", "rank-fig12")]
    assert all((rows["n"] == 5).all() for rows in found)
    return [[x for rows in found for x in rows.loc[name, LIMITS]] for name in names]


def _leads(rows: pd.DataFrame, one: str, other: str, column: str) -> pd.Series:
    """Return for each pair of networks the least log2 ratio; it is negative if reversed.

    The numerator is the network that begins higher. Pairs that begin equal are excluded.
    """
    rows = rows[rows["network"].isin([one, other])]
    rows = rows.assign(replicate=rows.groupby(["figure", "depth", "replicate"]).ngroup())
    values = rows.pivot(index=["replicate", "epoch"], columns="network", values=column)
    return least_lead(values).dropna()


def every(condition: pd.Series) -> int:
    """Return the number of pairs, after a check that the condition is true of all."""
    assert condition.all()
    return len(condition)


def orders() -> Rows:
    """In how many pairs training keeps or reverses the order of the ranks, and of r."""
    deep = {f: kept_tables(f, "paper") for f in ("rank-fig4", "rank-fig12", "rank-fig6")}
    deep = {f: at_chosen_rates(tables).assign(figure=f) for f, tables in deep.items()}
    images = {f: paths(kept_tables(f, "medium")) for f in ("rank-fig5", "rank-fig13")}
    broken_ones = pd.concat([rows.assign(figure=f, depth=0) for f, rows in images.items()])
    broken_ones = broken_ones.rename(columns={"method": "network"})
    four, six = deep["rank-fig4"], deep["rank-fig6"]
    both = pd.concat([four, deep["rank-fig12"]])
    normalized, plain = ("batch_norm", "M = 1000"), ("M = 1000", "vanilla")
    asymmetric, usual = "batch_norm_asymmetric", "batch_norm"
    plain_r = _leads(four, *plain, "rank_bound")
    twelve = deep["rank-fig12"]
    twelve_rank, twelve_r = (_leads(twelve, *plain, name) for name in ("rank", "rank_bound"))
    first_r = _leads(twelve.query("epoch <= 1"), *plain, "rank_bound")
    assert (first_r < 0).sum() == 1
    five_r = _leads(six, "M = 5", asymmetric, "mean_rank_bound")
    every(_leads(four.query("epoch <= 1"), *plain, "rank_bound") > 0)
    every(_leads(six, asymmetric, "vanilla", "mean_rank_bound") > 0)
    lowered = 100 * (1 - 2**five_r)
    asymmetric_rank = _leads(six, asymmetric, "vanilla", "rank")
    return [
        [every(_leads(both, *normalized, "rank") > 0),
         every(_leads(both.query("epoch <= 1"), *normalized, "rank_bound") < 0)],
        [every(_leads(four, *plain, "rank") < 0), (plain_r < 0).sum(), len(plain_r)],
        [(twelve_rank < 0).sum(), len(twelve_rank), (twelve_r < 0).sum(), len(twelve_r)],
        [every(_leads(six, "M = 5", asymmetric, "rank") > 0),
         every(five_r < 0), lowered.min(), lowered.max()],
        [every(asymmetric_rank < 0)],
        [every(_leads(broken_ones, usual, asymmetric, "rank") > 0)],
    ]  # fmt: skip


def broken() -> Rows:
    """Ranks and accuracies after training, from the usual and from asymmetric weights."""
    images = [of(5, paths(kept_tables(f, "medium"))) for f in ("rank-fig5", "rank-fig13")]
    dense = of(8, trained(kept_tables("rank-starts", "paper"))).rename(columns={"init": "method"})
    dense = dense.replace({"pytorch": "batch_norm", "asymmetric": "batch_norm_asymmetric"})
    found = []
    for rows in (*images, dense):
        medians = last_epoch(rows).groupby("method")[["rank", "train_accuracy"]].median()
        pair = medians.loc[["batch_norm", "batch_norm_asymmetric"]]
        found.append([*pair["rank"], *pair["train_accuracy"]])
    return found


def theory() -> Rows:
    """Bounds, exponents and rates of very deep linear networks, each in its least favorable case.

    Where the page has an interval, it is the one of the claim's test.
    """
    at = {name: kept_tables(f"rank-{name}", "paper") for name in (
        "laws", "assumptions", "live", "fig3b", "lemma3", "lemma7", "fig8")}  # fmt: skip

    def values(quantity: Quantity, name: str) -> pd.Series:
        return quantity.measure(at[name])["value"]

    grown = [chain.exponent("soft rank", f"law == 'gaussian' and tau == {tau}")
             for tau in THRESHOLDS]  # fmt: skip
    behind = chain.ratio_behind("4 / L").measure(at["assumptions"]).groupby("L")["value"].median()
    first = chain.stretch("index == 1", 10).measure(at["fig3b"]).groupby("γ")["value"].median()
    left = chain.exponent_of_remainder().measure(at["lemma7"]).groupby(["d", "law"])["value"]
    alpha = chain.alpha(OF_THE_FIGURES).measure(at["fig8"]).groupby("d")["value"].max()
    kept = judged("rank-assumptions", at["assumptions"], "scaled-branch-keeps-rank").iloc[0]
    rate = judged("rank-lemma3", at["lemma3"], "rate-is-lyapunov-gap").iloc[0]
    return [
        [values(chain.soft_rank_over_bound(), "laws").min(),
         values(chain.r_over_bound(), "laws").min()],
        [min(values(of_tau, "assumptions").min() for of_tau in grown)],
        [values(chain.r_over_full(), "live").max()],
        [values(chain.mean_r("asymmetric"), "assumptions").max()],
        [first.max(), 10],
        [*kept[LIMITS], behind.idxmin()],
        [*rate[LIMITS]],
        [left.median().min()],
        [0.9, alpha.index[alpha[::-1].cummax()[::-1] < 0.9].min(),
         values(chain.exponent("‖M‖²", OF_THE_FIGURES), "fig8").max(),
         values(chain.norm_over_bound(), "fig8").max()],
    ]  # fmt: skip


def gradients() -> Rows:
    """Ratio of gradient norms with its range, r and rank, at 100 layers of width 64."""
    rows = random_networks(kept_tables("rank-gradients", "paper")).query("L == 100 and d == 64")
    found = []
    for name in ("ReLU, batch norm", "ReLU, plain", "linear, batch norm",
                 "linear, batch norm, orthogonal weights"):  # fmt: skip
        drawn = of(32, select(rows, network=name))
        medians = drawn[["rank_bound", "matrix_rank"]].median()
        found.append([*spread(drawn["ratio"]), *medians])
    return found


def vgg() -> Rows:
    """Rank, r, size and alignment of VGG-19 before training, and the accuracy after it."""
    tables = kept_tables("rank-vgg")
    columns = ["rank", "rank_bound", "size", "alignment"]
    before = of(8, tables["before"]).groupby("method")[columns].median()
    after = of(8, trained(tables)).groupby("method")["train_accuracy"].median()
    return [[*before.loc[m], after[m]] for m in ("vanilla", "he", "unit_scale")]


def late_steps() -> list[float]:
    """How long late steps of the normalized matrix are, in units of the early ones."""
    tables = kept_tables("rank-lemma3", "paper")
    return [*judged("rank-lemma3", tables, "matrix-converges")["estimate"]]


ERRORS: dict[str, Callable[[], list[float]]] = {"Lemma 3a": late_steps}
"""Measured numbers of the table of errors in the paper, by how a row begins."""

TABLES: dict[str, Callable[[], Rows]] = {
    "hidden layers (means of 5 networks)": by_depth,
    "width d (no skip connection)": by_width,
    "initialization": pretraining,
    "plain network, initialized by": initializations,
    "32 layers, digits": norms,
    "30 layers, Fashion-MNIST, at the learning rate that six others chose": sizes,
    "last hidden layer (30 layers, zero biases, size 1)": ranks,
    "training loss, epoch 100": losses,
    "depth 32, difference of training losses averaged over all epochs"
    " (interval of the test, n = 5)": differences,
    "pair of networks": orders,
    "at the end of training": broken,
    "statement": theory,
    "100 hidden layers, width 64": gradients,
    "plain VGG-19, digits": vgg,
}
