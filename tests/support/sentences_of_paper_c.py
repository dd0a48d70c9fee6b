"""The numbers of sentences on docs/paper-c.md, computed from the stored tables.

SENTENCES has a function for each part of a sentence, in which # stands for a number. It returns
these numbers in their order.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from in_memory import kept_tables
from tables_of_paper_c import ADAM, adam, by_gain, by_rate

from runner.papers.training_invariances.invariances import figures, quantities, tables
from runner.papers.training_invariances.low_rank_training import tables as training
from runner.papers.training_invariances.low_rank_training.claims import CLOSE
from runner.papers.training_invariances.low_rank_training.quantities import off_the_law, outside
from runner.papers.training_invariances.practical_layers.tables import MIDDLE, orders


def ends(values: pd.Series) -> list[float]:
    """Return the smallest and the largest value."""
    return [values.min(), values.max()]


def usual_weights() -> list[float]:
    """Ratio at gain 1 in percent, before and after training."""
    before, *after = by_gain()[0]
    return [100 * before, 100 * after[2]]


def control_of_small_networks() -> list[float]:
    """The largest change of D of ReLU layers at depth 4 and width 3."""
    rows = tables.final(kept_tables("conserved", "paper")["metrics"])
    rows = rows.query(f"depth == 4 and width == 3 and {figures.SHOWN[figures.MOVES]}")
    return [(rows["drift"] / rows["initial"]).max()]


def fitted(statement: str) -> pd.Series:
    """Convergence orders in figure first-order, of the rows whose name begins with this text."""
    rows = figures.fitted_orders(kept_tables("first-order", "paper"))
    return rows.loc[rows["statement"].str.startswith(statement), "order"]


def weak_control() -> list[float]:
    """Cuts without an edge that look conserved, and all of them."""
    order = fitted("graph: cut without one edge")
    return [(order > MIDDLE).sum(), len(order)]


def with_runge_kutta() -> list[float]:
    """Median order of D of linear layers, with steps of gradient descent and of Runge–Kutta."""
    return [fitted("Theorem 1.1:").median(), fitted("1.1 with Runge–Kutta").median()]


def settled() -> list[float]:
    """Settled orders without Adam: percent by optimizer, others of attention, and controls."""
    rows = orders(kept_tables("invariants-in-practice", "paper")).query("method != 'Adam'")
    kept, controls = (rows[rows["control"] == of] for of in (False, True))
    attention = kept[~kept["asymptotic"] & (kept["label"] == "attention: queries, keys")]
    percent = 100 * kept.groupby("method")["asymptotic"].mean()
    return [
        *ends(percent),
        *ends(attention["value"]),
        controls["asymptotic"].sum(),
        len(controls),
    ]


def before_batch_norm() -> list[float]:
    """The drift of the norm before batch norm under Adam, at the smallest learning rate."""
    return adam()[ADAM.index("before batch norm: ‖w‖²")][-1:]


def what_grows() -> dict[str, pd.DataFrame]:
    """The tables of figure what-grows."""
    return kept_tables("what-grows", "paper")


def of_gaussian() -> pd.DataFrame:
    """The last inner layers on Gaussian data."""
    return figures.last_dense(what_grows()).query("data == 'gaussian'").sort_values("time")


def growth_of_remainder() -> list[float]:
    """The remainder at the end of training divided by its initial value: smallest, largest."""
    by = of_gaussian().groupby(["run", "replicate"])["remainder"]
    return ends(by.last() / by.first())


def balanced() -> list[float]:
    """The smallest ratio at any time of linear networks with D = 0."""
    rows = what_grows()["lowrank"]
    smallest = rows.loc[rows["balanced"].astype(bool), "operator_ratio"].min()
    assert smallest > 1 - 1e-12
    return [smallest]


def slowest_alignment() -> list[float]:
    """The largest exponent of the misalignment in ‖W‖²."""
    return [quantities.exponent_in_norm("1 - alignment").measure(what_grows())["value"].max()]


def digits_of_time() -> list[float]:
    """The number of digits of the last time t of the linear network, in millions."""
    rows = of_gaussian().query("architecture == 'linear'")
    last = rows[rows["time"] == rows["time"].max()]
    return [last["log_flow_time"].median() / np.log(10) / 1e6]


def judged(share: float = 1.0) -> pd.DataFrame:
    """Layers that Eq. (14) says something about, after this share of the path."""
    return tables.ends(tables.telling(what_grows()), share)


def above_bound() -> list[float]:
    """The final ratio divided by its bound: smallest, largest."""
    return ends(judged()["operator_ratio"] / judged()["bound"])


def wide_blocks() -> list[float]:
    """The ratio of residual blocks of width 208, halfway along the path and at its end."""
    where = "kind == 'residual_free' and width == 208"
    return [judged(share).query(where)["operator_ratio"].median() for share in (0.5, 1)]


def convolutions(layer: int, data: str) -> list[float]:
    """The ratio of a convolution with 16 channels, halfway along the path and at its end."""
    rows = tables.tail(what_grows()).query(
        f"architecture == 'conv' and channels == 16 and layer == {layer} and data == '{data}'"
    )
    return [tables.ends(rows, share)["operator_ratio"].median() for share in (0.5, 1)]


def at_every_time() -> list[float]:
    """The number of networks with a ratio above the bound of Eq. (13) at every time."""
    above = quantities.ratio_above().measure(what_grows())
    return [(above.groupby("replicate")["value"].min() >= 0).sum()]


def by_adam() -> list[float]:
    """Adam at learning rate 0.004: changes of D and the remainder in percent, ratios."""
    where = "method == 'Adam' and learning_rate == 0.004 and weight_decay == 0"
    rows = training.last_inner(kept_tables("beyond-gradient-flow", "paper")).query(where)
    begin, end = (part.set_index("replicate") for part in (rows.query("epoch == 0"),
                  training.ends(rows)))  # fmt: skip
    changes = [end["drift"] / end["initial_invariant"], end["remainder"] / begin["remainder"] - 1]
    return [*(100 * change.median() for change in changes),
            begin["ratio"].median(), end["ratio"].median()]  # fmt: skip


def powers_of_width() -> list[float]:
    """Powers of the width in the remainder and the largest squared singular value."""
    rows = training.plain(kept_tables("low-rank-training", "paper"))
    rows = rows.query("classes == 2 and gain == 0.5")
    last = rows.groupby("run")["epoch"].max().min()
    by = rows[rows["epoch"] == last].groupby("width")
    medians = (by[column].median() for column in ("remainder", "top"))
    return [np.polyfit(np.log(median.index), np.log(median), 1)[0] for median in medians]


def diverged() -> list[float]:
    """Networks under gradient descent and SGD that diverge, in percent."""
    rows = outside(("gradient descent", "SGD")).measure(kept_tables("low-rank-training", "paper"))
    return [100 * rows.drop_duplicates(training.NETWORK)["diverged"].mean()]


def behind_convolutions() -> list[float]:
    """The remainder of the first layer behind convolutions on Fashion-MNIST, before and after."""
    rows = training.marked(kept_tables("low-rank-training", "paper"))
    rows = rows.query("architecture == 'conv' and data == 'fashion_mnist' and gain == 1")
    rows = rows[~rows["diverged"] & (rows["layer"] == rows["layer"].min())]
    parts = rows[rows["epoch"] == 0], training.ends(rows)
    return [part["remainder"].median() for part in parts]


def raised_by_training() -> list[float]:
    """Networks whose effective rank rises at depths 4 to 16, and at depth 2, and all of them."""
    rows = kept_tables("what-others-saw", "medium")["features"]
    by = rows.pivot(index=["replicate", "depth"], columns="trained", values="effective_rank")
    rises = (by[True] > by[False]).unstack()
    return [rises.drop(columns=2).all(axis=1).sum(), rises[2].sum(), len(rises)]


def with_adamw() -> list[float]:
    """The largest weight decay at which AdamW's remainder is close to exp(−2λT)."""
    rows = off_the_law(("AdamW",), *CLOSE).measure(kept_tables("beyond-gradient-flow", "paper"))
    rows = training.last(rows.query("classes == 2 and data == 'digits' and not diverged"))
    close = rows.groupby("weight_decay")["value"].median() <= 1
    return [close.index[close].max()]


def trained() -> pd.DataFrame:
    """The networks of beyond-gradient-flow on digits after training, with their accuracy."""
    return training.ends(training.steady(kept_tables("beyond-gradient-flow", "paper"), "training"))


def of_two_classes() -> list[float]:
    """The smallest training accuracy for two classes."""
    return [trained().query("classes == 2")["accuracy"].min()]


def of_ten_classes() -> list[float]:
    """Accuracy for ten classes without weight decay and with it, under SGD and momentum."""
    rows = trained().query("classes == 10")
    ten = rows.groupby(["method", "weight_decay"])["accuracy"].median()
    return [ten["SGD", 0], ten["SGD", 0.01], ten["momentum", 0.01]]


def of_adamw() -> list[float]:
    """Accuracy for ten classes with AdamW at λ = 0.1, and the networks."""
    rows = trained().query("classes == 10 and method == 'AdamW' and weight_decay == 0.1")
    return [rows["accuracy"].median(), len(rows)]


def _large_values(method: str, weight_decay: float) -> float:
    """How many singular values of the last inner layer exceed 0.3 times its largest, in the median.

    The networks learn ten classes of digits.
    """
    rows = training.last_inner(kept_tables("beyond-gradient-flow", "paper"), "spectrum")
    rows = rows[(rows["method"] == method) & (rows["weight_decay"] == weight_decay)]
    rows = training.ends(rows.query("classes == 10"))
    largest = rows.groupby("replicate")["singular_value"].transform("max")
    is_large = rows["singular_value"] > 0.3 * largest
    return is_large.groupby(rows["replicate"]).sum().median()


def large_values() -> list[float]:
    """The threshold, and how many large values there are without weight decay."""
    assert {_large_values(method, 0.01) for method in ("SGD", "momentum")} == {3}
    return [0.3, _large_values("SGD", 0), _large_values("momentum", 0)]


def large_values_of_adamw() -> list[float]:
    """Numbers of large singular values under AdamW, as words on the page: six and five."""
    assert [_large_values("AdamW", decay) for decay in (0, 0.1)] == [6, 5]
    return of_adamw()


def change_with_ten_classes() -> list[float]:
    """SGD on ten classes of Fashion-MNIST: learning rate, change of D in percent, networks."""
    rows = training.marked(kept_tables("beyond-gradient-flow", "paper"))
    where = "method == 'SGD' and classes == 10 and data == 'fashion_mnist' and weight_decay == 0"
    rows = training.ends(training.last(training.inner(rows.query(f"{where} and not diverged"))))
    (rate,) = {*rows["learning_rate"]}
    return [rate, 100 * (rows["drift"] / rows["initial_invariant"]).median(), len(rows)]


def adam_at_small_rates() -> list[float]:
    """Two small learning rates of Adam, the change of D at both, and in how many it is larger."""
    rows = by_rate(kept_tables("beyond-gradient-flow", "paper")).query("method == 'Adam'")
    rows = rows.assign(moved=rows["drift"] / rows["initial_invariant"])
    by = rows.pivot(index="replicate", columns="learning_rate", values="moved")
    larger, smaller = 0.00025, by.columns.min()
    both = [larger, smaller, by[larger].median(), by[smaller].median()]
    assert (by[smaller] > by[larger]).all()
    return [*both, len(by)]


def sign_changes() -> list[float]:
    """Weights that change sign in the first and the last twentieth, which Runge–Kutta confirms."""
    rows = what_grows()["assumptions"].query("architecture == 'relu_then_linear' and time > 0")
    same = rows.groupby(["data", "learning_rate", "time"])["integrator"].transform("nunique") == 2
    rows = rows[same & (rows["learning_rate"] == rows["learning_rate"].min())]
    by = 100 * rows.groupby(["integrator", "time"])["sign_changes"].median()
    euler, runge_kutta = ([*by[name].iloc[[0, -1]]] for name in ("euler", "rk4"))
    np.testing.assert_allclose(euler, runge_kutta, atol=0.05)
    return euler


def exponents() -> list[float]:
    """Exponents of log t in ‖W‖ without skip connections: smallest, largest, and 1/L."""
    rows = quantities.exponent_in_log_time().measure(what_grows())
    return [*ends(rows["exponent"]), (rows["exponent"] / rows["value"]).median()]


SENTENCES: dict[str, Callable[[], list[float]]] = {
    "the largest squared singular value is # % of the sum before training and # % after it":
        usual_weights,
    "the control varies more, between nearly 0 and #": control_of_small_networks,
    "it looks conserved in # of # cases": weak_control,
    "The order of their invariants then rises from # to #": with_runge_kutta,
    "Of the orders of conserved quantities, # to # % are settled. Four of the five others are of"
    " attention's queries and keys (# to #). Of the controls, # of # are settled": settled,
    "while a drift of # % remains": before_batch_norm,
    "The remainder ends at # to # times its initial value": growth_of_remainder,
    "its ratio is # at all times": balanced,
    "to the power # in the slowest case": slowest_alignment,
    "a number with # million digits": digits_of_time,
    "Ratios end at # to # times their bound": above_bound,
    "at width 208 the ratio is # halfway along the path and # at its end": wide_blocks,
    "ratio of the table's layer rises from # to # in": lambda: convolutions(3, "gaussian"),
    "it rises only from # to #.": lambda: convolutions(2, "gaussian"),
    "But on digits layer 2 reaches #": lambda: convolutions(2, "digits")[1:],
    "This bound holds in all # networks at every time": at_every_time,
    "D changes by # %, the remainder by # %, and the ratio rises from # to #": by_adam,
    "grows like the width to the power #, whereas the largest singular value hardly depends on the"
    " width (power #)": powers_of_width,
    "(# % diverged, nearly all": diverged,
    "has hardly changed (from # to #)": behind_convolutions,
    "in all # networks at depths 4 to 16, and in # of # at depth 2": raised_by_training,
    "On digits AdamW's remainder follows it up to λ = #": with_adamw,
    "Training accuracy then falls from # to # with SGD, and to # with momentum": of_ten_classes,
    "from learning rate # to # it even rises, from # to #, in all # networks": adam_at_small_rates,
    "exceed # times the largest (without decay # with SGD and # with momentum)": large_values,
    "and five at λ = 0.1, and accuracy stays at # (# networks": large_values_of_adamw,
    "SGD at #, the only rate that we ran, changes D by # %; # networks": change_with_ten_classes,
    "With two classes accuracy stays at #": of_two_classes,
    "change sign: # % over the first twentieth of the path and # % over the last": sign_changes,
    "the exponents of ‖W‖ are # to # in networks without skip connections, where 1/L = #":
        exponents,
}  # fmt: skip
