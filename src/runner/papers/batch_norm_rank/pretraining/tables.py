"""Choose learning rates and select rows from the tables of study `pretraining`."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import with_divergence
from runner.results.rows import Tables, nonempty

VARIANT = ["method", "pretraining_steps"]
"""Columns that identify a variant: the method and M, the length of its pre-training."""

NETWORK = ["depth", "protocol", *VARIANT, "network", "replicate"]
"""Columns that identify a network among all runs of a figure."""

ENOUGH = 1000
"""Smallest number of pre-training minibatches that claims and headlines judge."""

LONG = 50
"""Smallest number of epochs for which claims judge how fast networks learn."""


def at_chosen_rates(tables: Tables) -> pd.DataFrame:
    """Return the training of all networks, each at its chosen learning rate.

    There is a row of `training.csv` for each network, replicate and epoch. Replicates that only
    choose learning rates are excluded. The chosen learning rate has the lowest training loss at the
    last epoch, as in the authors' code for figure 4. This loss is the largest one among the
    replicates that choose. Diverged networks have infinite loss and accuracy zero.

    The added column `network` is the method, or "M = 75" for networks with 75 steps or minibatches
    of pre-training.
    """
    rows = with_divergence(tables["training"])
    lengths = "M = " + rows["pretraining_steps"].astype(str)
    rows = rows.assign(network=rows["method"].mask(rows["method"] == "pretrained", lengths))
    kind = ["run", *VARIANT]
    last = rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]
    alone = last.groupby(kind)["judged"].transform("all")  # one learning rate, no choice
    tried = last[alone | ~last["judged"]]
    worst = tried.groupby([*kind, "learning_rate"], as_index=False)["train_loss"].max()
    chosen = worst.sort_values(["train_loss", "learning_rate"]).drop_duplicates(kind)
    return rows[rows["judged"]].merge(chosen[[*kind, "learning_rate"]])


def through_training(tables: Tables) -> pd.DataFrame:
    """Return the mean losses and accuracies over all epochs from 1 on, a row for each network.

    The column `epochs` is the number of epochs.
    """
    rows = at_chosen_rates(tables)
    columns = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
    networks = rows[rows["epoch"] > 0].groupby(NETWORK, sort=False)
    means = networks[columns].mean()
    return means.assign(epochs=networks["epoch"].max()).reset_index()


def before_training(tables: Tables) -> pd.DataFrame:
    """Return the networks before training by SGD, each at its chosen learning rate."""
    rows = at_chosen_rates(tables)
    return rows[rows["epoch"] == 0]


def last_epochs(tables: Tables) -> pd.DataFrame:
    """Return the networks after the last epoch, each at its chosen learning rate."""
    rows = at_chosen_rates(tables)
    return rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]


def of_protocol(rows: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Return the rows of a protocol. Raises NoRows if the protocol was not run."""
    return nonempty(rows[rows["protocol"] == protocol], f"rows: protocol={protocol}")


def named(rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """Return the rows of a network.

    network: a name in the column `network`, such as "M = 75", or a method. Raises NoRows if the
    network was not run.
    """
    of_network = rows[(rows["network"] == network) | (rows["method"] == network)]
    return nonempty(of_network, f"rows: {network}")


def deepest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the largest depth in the table."""
    return rows[rows["depth"] == rows["depth"].max()]


def lead(values: pd.Series, baseline: pd.Series, column: str) -> pd.Series:
    """Return how much better values of a measure are than a baseline, positive if better.

    column: the measure, such as `train_loss`. A loss is better if it is lower, every other measure
    if it is higher.
    """
    difference = values - baseline
    return -difference if "loss" in column else difference
