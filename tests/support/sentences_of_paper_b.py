"""The numbers of sentences on docs/paper-b.md, computed from the stored tables.

SENTENCES has a function for each part of a sentence, in which # stands for a number. It returns
these numbers in their order. Numbers are medians over networks, unless a function says otherwise.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from in_memory import judged, kept_tables
from tables_of_paper_b import LIMITS, after, every, initializations, norms, spread, vgg

from runner.data import CLASSES
from runner.papers.batch_norm_rank.breaking_bn.tables import paths
from runner.papers.batch_norm_rank.learning import LITTLE, learned_share, with_divergence
from runner.papers.batch_norm_rank.pretraining import quantities as pretraining
from runner.papers.batch_norm_rank.pretraining.tables import (
    at_chosen_rates,
    before_training,
    last_epochs,
    through_training,
)
from runner.papers.batch_norm_rank.rank_chain import quantities as chain
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.papers.batch_norm_rank.rank_gradients.quantities import factor_over_theory
from runner.papers.batch_norm_rank.rank_gradients.tables import networks as random_networks
from runner.papers.batch_norm_rank.rank_or_size import quantities as rank_or_size
from runner.papers.batch_norm_rank.rank_or_size.tables import ARM, AT_SIZE_1, networks
from runner.papers.batch_norm_rank.theory import RELU_GRADIENT_GROWTH
from runner.papers.batch_norm_rank.vgg_size.quantities import first_over_last
from runner.results.rows import Tables, last_epoch, select

CONTROL_1 = [("authors", "M = 75"), ("authors", "scale_matched"),
             ("text", "M = 75"), ("text", "scale_matched")]  # fmt: skip
"""Pre-trained networks of control 1 and random weights of their size, in two pairs."""


def of_figure_1(normalization: str) -> pd.DataFrame:
    """Figure 1: rank and r before training and accuracy after it, a row for each network."""
    tables, keys = kept_tables("rank-fig1", "paper"), ["depth", "replicate"]
    before = select(rank_of_last_layer(tables["metrics"]), normalization=normalization)
    after = select(trained(tables), normalization=normalization)[[*keys, "train_accuracy"]]
    return before[["width", *keys, "matrix_rank", "rank_bound"]].merge(after, on=keys)


def lowest_ranks() -> list[float]:
    """Smallest rank with batch norm, the width, and the first depth of rank 1 without it."""
    usual, plain = of_figure_1("batch"), of_figure_1("none")
    largest = plain.groupby("depth")["matrix_rank"].max()
    return [usual["matrix_rank"].min(), usual["width"].max(), 1, largest.index[largest == 1].min()]


def learners() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Plain networks of figure 1 that learn, and those that do not."""
    plain = of_figure_1("none")
    learn = learned_share(plain["train_accuracy"], 1 / CLASSES) >= LITTLE
    return plain[learn], plain[~learn]


def learning_by_rank() -> list[float]:
    """First depth that does not learn; smallest rank and accuracy of learners; rank of others."""
    learn, fail = learners()
    assert learn["depth"].max() < fail["depth"].min()
    lowest = [learn["matrix_rank"].min(), learn["train_accuracy"].min()]
    return [fail["depth"].min(), *lowest, fail["matrix_rank"].max()]


def learning_by_r() -> list[float]:
    """The smallest r of networks that learn minus the largest of the others, in millionths."""
    learn, fail = learners()
    return [1e6 * (learn["rank_bound"].min() - fail["rank_bound"].max())]


def by_layer() -> list[float]:
    """Figure 2: layers to rank 1 of plain networks, smallest ranks with batch norm, and √d."""
    rows = select(kept_tables("rank-fig2", "paper")["metrics"], dtype="float32")
    one = rows.query("normalization == 'none' and matrix_rank == 1")
    first = one.groupby(["activation", "replicate"])["layer"].min().groupby("activation").median()
    normalized = rows.query("normalization != 'none' and layer > 0")
    lowest = normalized.groupby(["activation", "normalization"])["matrix_rank"].min()
    d = rows["width"].max()
    of_relu = [lowest["relu", "batch"], lowest["relu", "batch_no_mean"]]
    return [1, first["linear"], first["relu"], lowest["linear"].min(), d, np.sqrt(d), *of_relu]


def at_large_widths() -> list[float]:
    """The two largest widths and the exponent of the soft rank between them."""
    tables = kept_tables("rank-wide", "paper")
    exponents = chain.exponent("soft rank", "γ == inf").measure(tables)
    widths = sorted({*tables["metrics"]["width"]})[-2:]
    return [*widths, select(exponents, range="the last doubling")["value"].item()]


def correlations() -> list[float]:
    """Initializations; correlations of the speed with the rank and the mean r, and networks."""
    tables = kept_tables("rank-pretraining", "paper")
    kinds = through_training(tables)[["protocol", "network"]].drop_duplicates()
    with_r = pretraining.correlation_with_r().measure(tables)["value"]
    with_rank = pretraining.correlation_with_rank().measure(tables)["value"]
    return [len(kinds), *spread(with_rank), len(with_rank), *spread(with_r)]


def _without_lowest(scale: str) -> tuple[pd.Series, pd.Series]:
    """Return the three lowest ranks of initializations, and correlations of the others.

    The three also learn least. A correlation, of the speed with the rank, is that of a replicate.
    """
    tables = kept_tables("rank-pretraining", scale)
    key = ["protocol", "network"]
    ranks = before_training(tables).groupby(key)["rank"].median().sort_values()
    losses = through_training(tables).groupby(key)["train_loss"].median().sort_values()
    assert {*ranks.index[:3]} == {*losses.index[-3:]}
    both = before_training(tables).merge(
        through_training(tables)[[*key, "replicate", "train_loss"]],
        on=[*key, "replicate"],
        suffixes=("_before", ""),
    )
    both = both[pd.MultiIndex.from_frame(both[key]).isin(ranks.index[3:])]
    found = [
        -part[["rank", "train_loss"]].rank().corr().loc["rank", "train_loss"]
        for _, part in both.groupby("replicate")
    ]
    return ranks[:3], pd.Series(found)


def among_the_other_ten() -> list[float]:
    """Smallest and largest rank of the three that learn least; correlation of the others."""
    lowest, found = _without_lowest("paper")
    return [lowest.min(), lowest.max(), *spread(found)]


def without_rotations() -> list[float]:
    """Rank of the networks pre-trained by rotations; correlations with rank and r without them."""
    tables = kept_tables("rank-pretraining", "paper")
    rows = tables["training"]
    every(np.isfinite(rows["train_loss"]))
    rank = select(before_training(tables), protocol="ours")["rank"].median()
    others = {"training": rows[rows["protocol"] != "ours"]}
    found = (pretraining.correlation_with_rank(), pretraining.correlation_with_r())
    return [rank, *(of.measure(others)["value"].median() for of in found)]


def of_figure_6() -> list[float]:
    """Correlation of the speed with mean r and with the rank, equal over figure 6's networks."""
    tables = kept_tables("rank-pretraining", "paper")
    found = (pretraining.correlation_with_r(), pretraining.correlation_with_rank())
    with_r, with_rank = (of.measure(tables)["of_figure_6"].median() for of in found)
    assert with_r == with_rank
    return [with_r]


def rates() -> list[float]:
    """The learning rates of control 1: the usual one, and that of Section 4's pre-training."""
    rows = last_epochs(kept_tables("rank-pretraining", "paper"))
    described = (rows["protocol"] == "text") & (rows["method"] == "pretrained")
    (usual,), (own,) = ({*rows[of]["learning_rate"]} for of in (~described, described))
    return [usual, own]


def correlations_on_digits() -> list[float]:
    """Correlations of the speed with rank, also without the lowest, and mean r; and networks."""
    tables = kept_tables("rank-pretraining")
    with_r = pretraining.correlation_with_r().measure(tables)["value"]
    with_rank = pretraining.correlation_with_rank().measure(tables)["value"]
    of_others = _without_lowest("quick")[1].median()
    return [with_rank.median(), of_others, with_r.median(), len(with_rank)]


def _by_network(rows: pd.DataFrame, column: str) -> list[pd.Series]:
    """Return a measure of the networks of CONTROL_1, by replicate."""
    return [
        select(rows, protocol=protocol, network=network).set_index("replicate")[column]
        for protocol, network in CONTROL_1
    ]


def pairs_on_digits() -> list[float]:
    """Accuracies of two pairs; where random weights are ahead, of how many; and mean losses."""
    tables = kept_tables("rank-pretraining")
    accuracies = _by_network(last_epochs(tables), "train_accuracy")
    one, like_one, two, like_two = accuracies
    *_, loss, loss_like = _by_network(through_training(tables), "train_loss")
    ahead = [(like_one > one).sum(), (like_two > two).sum(), len(one)]
    medians = [values.median() for values in accuracies]
    return [*medians, *ahead, every(loss < loss_like), loss.median(), loss_like.median()]


def second_pair_on_digits() -> list[float]:
    """Rank and r before training of the second pair.

    At the learning rate of its random weights, too, all pre-trained networks learn faster.
    """
    tables = kept_tables("rank-pretraining")
    before = before_training(tables)
    pairs = [_by_network(before, column)[2:] for column in ("rank", "rank_bound")]
    rows = select(with_divergence(tables["training"]), protocol="text", judged=True)
    rate = select(last_epochs(tables), protocol="text", method="scale_matched")["learning_rate"]
    rows = select(rows, learning_rate=rate.unique().item())
    pretrained, random = (
        select(rows, method=name).query("epoch > 0").groupby("replicate")["train_loss"].mean()
        for name in ("pretrained", "scale_matched")
    )
    assert every(pretrained < random) == 8
    return [values.median() for pair in pairs for values in pair]


def rank_of_right_size() -> list[float]:
    """Rank of random weights of the size of pre-trained ones, over both pairs."""
    rows = select(before_training(kept_tables("rank-pretraining", "paper")), method="scale_matched")
    return [rows["rank"].median()]


def slower_from_he() -> list[float]:
    """Networks that learn more slowly from He's weights than with batch norm, and mean losses."""
    rows = with_divergence(kept_tables("rank-norms", "paper")["training"]).query("depth == 32")
    plain, batch = (
        select(rows, normalization=kind, init=init).groupby("replicate")["train_loss"].mean()
        for kind, init in (("none", "he"), ("batch", "pytorch"))
    )
    return [every(plain > batch), plain.median()]


def slower_with_layer_norm() -> list[float]:
    """The learning rate, the number of slower networks, and mean losses of layer and batch norm."""
    tables = kept_tables("rank-norms", "paper")
    rows = with_divergence(tables["training"]).query("depth == 32")
    layer, rms, batch = (
        select(rows, normalization=kind).groupby("replicate")["train_loss"].mean()
        for kind in ("layer", "rms", "batch")
    )
    (rate,) = {*rows[rows["normalization"].isin(["layer", "rms"])]["learning_rate"]}
    assert rate == tables["selection"]["learning_rate"].min()
    number = every((layer > batch) & (rms > batch))
    return [rate, number, layer.median(), batch.median()]


CLOTHES = "paper"
"""The scale of controls 3 and 4 on Fashion-MNIST; on digits it is `quick`."""

ONE_SIZE = ("even", "sized", "signed")
"""Families of control 3 whose layers all have one size, with zero biases."""


def _trained(scale: str, *families: str) -> pd.DataFrame:
    """Return the networks of some families of controls 3 and 4."""
    rows = networks(kept_tables("rank-or-size", scale))
    return rows[rows["family"].isin(families)]


def _medians(rows: pd.DataFrame, column: str = "train_accuracy") -> pd.Series:
    return rows.groupby(ARM)[column].median()


def of_one_size() -> list[float]:
    """Smallest size, and the lowest and highest median accuracy, of networks of one size."""
    rows = _trained(CLOTHES, *ONE_SIZE)
    found = _medians(rows)
    return [_medians(rows, "size").min(), 1, found.min(), found.max()]


def size_and_speed() -> list[float]:
    """Steps, accuracies after them at the smallest size and at size 1, and those on digits."""
    tables = kept_tables("rank-or-size", CLOTHES)
    early = _medians(after(2))
    per_epoch = tables["training"]["train_images"].max() // tables["training"]["batch_size"].max()
    on_digits = _medians(_trained("quick", *ONE_SIZE))
    both = [early["even", 0], early["signed", 0]]
    return [2 * per_epoch, *both, on_digits.min(), on_digits.max()]


def unscaled() -> list[float]:
    """Accuracy of unscaled networks with its range, and their learning rate, the smallest."""
    rows = _trained(CLOTHES, "unscaled")
    (end,), (rate,) = {*rows["end"]}, {*rows["learning_rate"]}
    assert end == "smallest"
    return [*spread(rows["train_accuracy"]), rate]


def with_layer_rates() -> list[float]:
    """Accuracies with a learning rate for each layer: unscaled, and of two sizes with them."""
    found = _medians(_trained(CLOTHES, "unscaled_layer_rates", "sized_layer_rates"))
    of_sizes = found["sized_layer_rates"]
    return [found["unscaled_layer_rates", 0], *of_sizes.index, *of_sizes]


def at_a_good_size() -> list[float]:
    """Rank, spread and accuracy of default biases at size 1; the same, r and size of A B, k = 1."""
    plain = _trained(CLOTHES, "default_biases_unit")
    product = select(_trained(CLOTHES, "product"), level=1)
    shown = ["rank", "spread", "train_accuracy"]
    of_product = ["rank", "rank_bound", "size", "spread", "train_accuracy"]
    return [*plain[shown].median(), *product[of_product].median()]


def with_larger_pixels() -> list[float]:
    """The largest pixel, spread and rank with it, and accuracies with usual and such pixels."""
    rows = _trained(CLOTHES, "default_biases", "pixels_255")
    larger = select(rows, family="pixels_255")
    found = _medians(rows)
    both = [found["default_biases", 0], found["pixels_255", 0]]
    return [255, larger["spread"].median(), larger["rank"].median(), *both]


def pre_trained_and_random() -> list[float]:
    """Steps, and accuracies of pre-trained and random weights of one size: early, on digits, end.

    On digits the accuracies are those at the end.
    """
    names = ["pretrained", "size_of_pretrained"]
    stages = [after(2), _trained("quick", *names), _trained(CLOTHES, *names)]
    return [size_and_speed()[0], *(_medians(rows)[name, 0] for rows in stages for name in names)]


def rank_one() -> list[float]:
    """k = 1 and its accuracy with A B, and the accuracy at full rank."""
    found = _medians(_trained(CLOTHES, "product"))["product"]
    return [1, found.iloc[0], found.iloc[-1]]


def copied() -> list[float]:
    """Steps; accuracies after them and in the end, with k = 1, 4 and full rank."""
    early = _medians(after(2))["copied"]
    end = _medians(_trained(CLOTHES, "copied"))["copied"]
    k = [1, 4, end.index.max()]
    return [size_and_speed()[0], *early[k], *k[:2], *end[k]]


def rank_4() -> list[float]:
    """Networks in which full rank is ahead of rank 4, estimates and limits, on both data sets."""
    found = []
    for scale in (CLOTHES, "quick"):
        tables = kept_tables("rank-or-size", scale)
        verdict = judged("rank-or-size", tables, "rank-4-is-enough").iloc[0]
        assert verdict["point"] == "copied"
        found += [*verdict[LIMITS]]
    gain = rank_or_size.full_minus(4).measure(kept_tables("rank-or-size", CLOTHES))
    return [every(select(gain, construction="copied")["value"] > 0), *found]


def ordered_by() -> list[float]:
    """Correlations of the accuracy with rank, r and r of the deviations, with their ranges."""
    rows = rank_or_size.ordered_better().measure(kept_tables("rank-or-size", CLOTHES))
    rank, *others = (spread(rows[f"of_{name}"]) for name in ("rank", "r", "deviations"))
    kinds = _trained(CLOTHES, *AT_SIZE_1).groupby(ARM).ngroups
    return [kinds, 1, rank[0], len(rows), *rank[1:], *np.concatenate(others)]


def ordered_over_all() -> list[float]:
    """Correlations over all initializations: size, rank, r, r of the deviations, and spread."""
    rows = networks(kept_tables("rank-or-size", CLOTHES))
    columns = ["size", "rank", "rank_bound", "deviations_bound", "spread"]
    of_replicates = [
        group[[*columns, "train_accuracy"]].rank().corr()["train_accuracy"][columns]
        for _, group in rows.groupby("replicate")
    ]
    found = pd.DataFrame(of_replicates)
    return [rows.groupby(ARM).ngroups, *(found[column].median() for column in columns)]


def losses_on_test_images() -> list[float]:
    """Figure 4 at depth 32: last epoch and test losses, pre-trained and with batch norm."""
    rows = last_epochs(kept_tables("rank-fig4", "paper")).query("depth == 32")
    losses = rows.groupby("method")["test_loss"].median()
    return [rows["epoch"].max(), losses["pretrained"], losses["batch_norm"]]


def rates_of_batch_norm() -> list[float]:
    """Figure 4: the largest learning rate of batch norm, and the depths where it was chosen."""
    tables = kept_tables("rank-fig4", "paper")
    largest = select(tables["training"], method="batch_norm")["learning_rate"].max()
    chosen = select(last_epochs(tables), method="batch_norm").query("depth < 32")
    return [largest, *sorted({*select(chosen, learning_rate=largest)["depth"]})]


def with_pixels() -> list[float]:
    """Layers, and accuracies with default biases and pixels up to 1 and to 255, at one rate."""
    usual = rates_of_batch_norm()[0]
    rows = kept_tables("rank-or-size", CLOTHES)["training"]
    rows = last_epoch(with_divergence(select(rows, judged=True, learning_rate=usual)))
    found = _medians(rows)
    return [rows["depth"].max(), found["default_biases", 0], found["pixels_255", 0], 4, usual]


def figure_11() -> list[float]:
    """Accuracies of pre-trained minus other networks; minus the difference of test losses."""
    images, clothes = (kept_tables(f"rank-fig{number}", "paper") for number in (11, 12))
    accuracy = [
        pretraining.ahead("pretrained", than, "training accuracy").measure(images)["value"].median()
        for than in ("batch_norm", "vanilla")
    ]
    estimate, low, high = judged("rank-fig12", clothes, "better-test-loss").iloc[0][LIMITS]
    return [*accuracy, -estimate, -high, -low]


def _raised(tables: Tables) -> list[float]:
    """Return r and rank before training at depth 32, each of plain and of pre-trained networks.

    All pre-trained networks have a higher r and a lower rank than the plain network beside it.
    """
    rows = before_training(tables).query("depth == 32")
    plain, raised = (select(rows, method=name) for name in ("vanilla", "pretrained"))
    found = []
    for column, sign in (("rank_bound", 1), ("rank", -1)):
        one, other = (part.set_index("replicate")[column] for part in (plain, raised))
        every(sign * (other - one) > 0)
        found += [one.median(), other.median()]
    return found


def r_up_and_rank_down() -> list[float]:
    """The depth; r and rank on CIFAR-10; r after pre-training and both ranks on Fashion-MNIST."""
    images, clothes = (_raised(kept_tables(f"rank-fig{n}", "paper")) for n in (4, 12))
    return [32, *images, *clothes[1:]]


def first_epoch() -> list[float]:
    """Mean r with batch norm in figure 6, before training and after one epoch."""
    rows = select(at_chosen_rates(kept_tables("rank-fig6", "paper")), network="batch_norm")
    by_epoch = rows.groupby("epoch")["mean_rank_bound"].median()
    return [by_epoch[0], by_epoch[1]]


def growth_of_gradients() -> list[float]:
    """Growth of the gradient norm in a layer, its limit, and the ratio of both over all layers."""
    tables = kept_tables("rank-gradients", "paper")
    at = "L == 100 and d == 64"
    rows = select(random_networks(tables).query(at), network="ReLU, batch norm")
    growth = rows["ratio"] ** (1 / (rows["L"] - 1))
    beyond = factor_over_theory("ReLU, batch norm", at).measure(tables)["value"]
    return [growth.median(), 1, RELU_GRADIENT_GROWTH, 100, beyond.median()]


def orthogonal_weights() -> list[float]:
    """Largest width, and the growth of the gradient norm over 100 linear layers of this width."""
    rows = random_networks(kept_tables("rank-gradients", "paper"))
    rows = select(rows, network="linear, batch norm, orthogonal weights", L=100)
    return [rows["d"].max(), rows.query("d == d.max()")["ratio"].median()]


def _last(figure: str, column: str) -> pd.Series:
    """Return a measure of each method in the last epoch of a figure at scale `medium`."""
    return last_epoch(paths(kept_tables(figure, "medium"))).groupby("method")[column].median()


def without_mean() -> list[float]:
    """Rank of VGG-19 without mean subtraction, its largest value, epochs, and both accuracies."""
    rows = select(paths(kept_tables("rank-fig5", "medium")), method="batch_norm_no_mean")
    accuracy = _last("rank-fig5", "train_accuracy")
    both = [accuracy["batch_norm_no_mean"], accuracy["batch_norm"]]
    return [rows["rank"].median(), rows["rank"].max(), rows["epoch"].max(), *both]


def resnet_without_mean() -> list[float]:
    """Accuracies of ResNet-50 without mean subtraction and with it."""
    accuracy = _last("rank-fig13", "train_accuracy")
    return [accuracy["batch_norm_no_mean"], accuracy["batch_norm"]]


def alignments() -> list[float]:
    """Alignment of gradients without batch norm, of n networks, and with it before and after."""
    rows = paths(kept_tables("rank-fig10", "medium"))
    plain = rows[rows["method"].isin(["vanilla", "vanilla_random_pixels"])]
    before = select(rows, epoch=0, method="batch_norm")["gradient_alignment"].median()
    after = _last("rank-fig10", "gradient_alignment")["batch_norm"]
    least = plain["gradient_alignment"].min()
    return [least, plain["replicate"].nunique(), before, after]


def larger_rate() -> list[float]:
    """How many times larger the learning rate is with which the last layer becomes zero."""
    rows = paths(kept_tables("rank-fig10", "medium"))
    large, usual = (select(rows, method=name) for name in ("vanilla_100x", "vanilla"))
    every(large.query("epoch >= 6")["rank"] == 0)
    return [large["learning_rate"].max() / usual["learning_rate"].max()]


def vanished() -> list[float]:
    """Gradient norm of the first layer of VGG-19 over that of the last, in billionths."""
    return [1e9 * first_over_last("vanilla").measure(kept_tables("rank-vgg"))["value"].median()]


def rates_of_figure_12() -> list[float]:
    """Figure 12 at depth 8: learning rates of pre-trained and of plain networks."""
    rows = last_epochs(kept_tables("rank-fig12", "paper")).query("depth == 8")
    rates = rows.groupby("method")["learning_rate"].max()
    return [12, 8, rates["pretrained"], rates["vanilla"]]


SENTENCES: dict[str, Callable[[], list[float]]] = {
    "plain networks of # layers reach # even if their last hidden layer has rank #":
        lambda: [30, *reversed(rank_one()[:2])],
    "random weights of rank # learn as well as pre-trained ones of rank # and #":
        lambda: [initializations()[row][0] for row in (4, 1, 3)],
    "networks with layer norm begin at r = #, and plain ones with He's weights at #":
        lambda: [norms()[1][1], norms()[4][1]],
    "the rank as counted falls slowly (to # of 128": lambda: [initializations()[5][0]],
    "the rank is at least # of # in every network, while plain networks reach rank # at depth #":
        lowest_ranks,
    "plain networks of # or more layers learn nothing. Here plain networks of rank # or more learn"
    " (one only to an accuracy of #), and networks of rank # or less do not": learning_by_rank,
    "but only by a difference of # × 10⁻⁶": learning_by_r,
    "plain linear networks first reach rank # after # layers (median), and plain ReLU networks"
    " after #. With batch norm, linear networks keep at least rank #, above √# = #. ReLU networks"
    " with batch norm keep at least rank #, or # without mean subtraction": by_layer,
    "Between d = # and # the soft rank still grows like d^#": at_large_widths,
    "Over all # initializations of the picture it is # (# to #; # networks) for the rank and # (#"
    " to #) for the mean r": correlations,
    "the three initializations of lowest rank (# to #), which learn least: among the other ten it"
    " is # (# to #)": among_the_other_ten,
    "Without it (rank #), the correlations are # with the rank and # with the mean r":
        without_rotations,
    "rank and mean r both have a Spearman correlation of # with the speed": of_figure_6,
    "The learning rate is #, or # for pre-training as the paper describes it": rates,
    "the correlations are # with the rank (# without the three lowest) and # with the mean r (#"
    " networks": correlations_on_digits,
    "pre-trained weights reach # and random weights of their size #, in the second pair # and #."
    " Neither difference is clear (random weights are ahead in # and # of # networks), but in the"
    " second pair pre-trained weights learn faster in all # (mean training loss # and #)":
        pairs_on_digits,
    "perhaps the rank (# against #) or r (# against #)": second_pair_on_digits,
    "random weights of the right size have a *rank* of about #": rank_of_right_size,
    "use the smallest learning rate that we tried, #, and learn more slowly in all # networks (mean"
    " training loss # with layer norm, # with batch norm)": slower_with_layer_norm,
    "also more slowly than batch norm in all # networks (mean training loss #)": slower_from_he,
    "networks whose layers all have one size, from # to #, end between # and # on Fashion-MNIST":
        of_one_size,
    "after # steps, the smallest networks reach # and those of size 1 #. On digits training ends"
    " about there, accuracies run from # to #": size_and_speed,
    "networks reach only # (# to #) at #, the smallest learning rate of their grid": unscaled,
    "It then learns nothing (#), and networks of size # and # end at # and #": with_layer_rates,
    "the rank is #, the spread #, and the accuracy #. But networks of rank #, with r exactly #,"
    " size # and spread #, reach #": at_a_good_size,
    "early (after # steps # and #, on digits # and #), but end lower on Fashion-MNIST (# and #)":
        pre_trained_and_random,
    "Pixels up to # raise the spread to #, the rank to #, and the accuracy from # to #":
        with_larger_pixels,
    "with k = #, where r is exactly 1, too, networks end at #, at full rank at #": rank_one,
    "after # steps, networks reach #, # and # with k = #, # and full rank, and at the end #, # and"
    " #": copied,
    "full rank is ahead in all # networks, by # (interval # to #), and on digits by # (# to #)":
        rank_4,
    "Over the # initializations of size # with zero biases, the accuracy at the end has a Spearman"
    " correlation of # with the rank (range over # replicates # to #), # with r (# to #),"
    " and # with r of the deviations (# to #)": ordered_by,
    "Over all # initializations of the figure's table, it is # with the size, # with the rank, #"
    " with r, # with r of the deviations, and # with the spread": ordered_over_all,
    "at epoch #, pre-trained networks are worse (# against #)": losses_on_test_images,
    "The learning rate is #, the largest that batch norm was given, and its best at depths # and #":
        rates_of_batch_norm,
    "they raise the accuracy of networks of # layers from # to # at figure #'s learning rate, #":
        with_pixels,
    "averaged over the epochs, is # above batch norm; whether it is above plain networks (by #) is"
    " undecided. On Fashion-MNIST the test loss of pre-trained networks is # (# to #)"
    " above batch norm": figure_11,
    "At depth #, pre-training raises r from # to # on CIFAR-10 and *lowers* the rank from # to #."
    " On Fashion-MNIST r rises to #, and the rank falls from # to #": r_up_and_rank_down,
    "the mean r of figure 6 falls from # to # in the first epoch": first_epoch,
    "the gradient norm grows by a factor of # per layer": lambda: growth_of_gradients()[:1],
    "their theory gives a factor of √(π/(π − #)) = #. Over # layers our finite networks' growth is"
    " # times as large": lambda: growth_of_gradients()[1:],
    "At width # they grow by a factor of #": orthogonal_weights,
    "VGG-19 keeps rank # of # without it. But then it learns more slowly: after # epochs its"
    " training accuracy is # instead of #": without_mean,
    "ResNet-50 reaches # instead of #": resnet_without_mean,
    "the alignment of its gradients is # (figure 10 at `medium`, n = #). With batch norm the"
    " alignment is # before training and # after training": alignments,
    "A learning rate # times larger does not help": larger_rate,
    "gradients of alignment # do not make VGG-19 untrainable": lambda: [vgg()[2][3]],
    "the norm in the first layer is # × 10⁻⁹ times": vanished,
    "In figure # at depth #, pre-trained networks use # and plain networks #": rates_of_figure_12,
}  # fmt: skip
