"""Initialize fully connected networks, copy them for training at several learning rates, measure
them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from math import inf

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.core.studies import Context, Measured, network_name
from runner.networks.activations import activation_of
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.measures import last_hidden, ranks
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs
from runner.training.classification import Group


def starting_stack(
    config: TrainedMLPs,
    features: int,
    classes: int,
    normalization: str,
    replicates: range,
    *,
    init: str = "pytorch",
    activation: str = "relu",
    skip: float = inf,
    dtype: torch.dtype = torch.float32,
) -> MLP:
    """Return one initialized network per replicate, with the study's depth and width.

    A replicate's random draws are the same for every normalization. features, classes: numbers of
    inputs and outputs. skip: weight gamma of the residual branch; inf: no skip connection.

    Raises InputError for an unknown initialization, activation or normalization.
    """
    sizes = [features, *[config.width] * config.depth, classes]
    streams = [config.stream(replicate, "initialisation") for replicate in replicates]
    return drawn_stack(sizes, streams, normalization, init, activation, skip, dtype)


def drawn_stack(
    sizes: list[int],
    streams: list[Generator],
    normalization: str,
    init: str,
    activation: str,
    skip: float = inf,
    dtype: torch.dtype = torch.float64,
) -> MLP:
    """Return one initialized network per random stream.

    sizes: numbers of inputs, of units in each hidden layer, and of outputs. skip: weight gamma of
    the residual branch; inf: no skip connection.

    Raises InputError for an unknown initialization, activation or normalization.
    """
    weights, biases = draw(init, sizes, streams, dtype)
    for W in weights if init == "gain" else ():
        W *= activation_of(activation).gain
    return MLP(weights, biases, activation, normalization, skip)


def group(network: MLP, rates: list[float], replicates: range) -> Group:
    """Return one copy of each network for each learning rate, to be trained together.

    The copies are ordered like `product(rates, replicates)`. replicates: the number of the
    replicate of each network.
    """
    chosen = torch.arange(len(replicates)).repeat(len(rates))
    of_networks = torch.tensor(rates, dtype=torch.float64).repeat_interleave(len(replicates))
    return Group(network.select(chosen), of_networks, torch.tensor(replicates).repeat(len(rates)))


def last_ranks(network: MLP, x: Float[Tensor, "*R N features"]) -> dict[str, Float[Tensor, " R"]]:
    """Return the rank of the last hidden layer and its lower bound r, for each of R networks.

    The keys are `rank` and `rank_bound`, columns of the tables. x: inputs, samples as rows; either
    the same for all networks or one set for each network.
    """
    inputs = x.to(network.parameters["W1"].dtype).expand(len(network), -1, -1)
    measured = ranks(last_hidden(network, inputs))
    return {"rank": measured.matrix_rank, "rank_bound": measured.rank_bound}


def by_network(columns: Mapping[str, Float[Tensor, " R"]]) -> Iterator[dict[str, float]]:
    """Yield for each of R networks a dictionary from column to value.

    columns: R values for each column.
    """
    values = zip(*(tensor.tolist() for tensor in columns.values()), strict=True)
    return (dict(zip(columns, row, strict=True)) for row in values)


def hand_over(
    context: Context, name: str, network: MLP, x: Tensor, epoch: int
) -> Iterator[Measured]:
    """Give each network to the user's function `measure`; yield the rows of its numbers.

    The networks of the stack are replicates. name: their common name, to which the width is added.
    x: inputs, samples as rows; either the same for all networks or one set for each network. epoch:
    the time in the rows.
    """
    d, _ = network.parameters["W1"].shape[1:]
    inputs = x.to(network.parameters["W1"].dtype).expand(len(network), -1, -1)
    for replicate in range(len(network)):
        traced = partial(network.traced, replicate, inputs[replicate])
        yield from context.hand_over(network_name(name, width=d), replicate, epoch, traced)
