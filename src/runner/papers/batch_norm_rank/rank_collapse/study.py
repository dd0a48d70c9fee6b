"""Study `rank_collapse`: rank at initialisation, and training, against depth (paper B, Section
1.1).

Fully connected networks with and without batch normalization start from the same weights. The rank
of their hidden representations is measured layer by layer before training (`metrics.csv`; Figure 2,
and Figure 1 left). Replicates of their own are trained by SGD at every rate of a grid, side by side
(`selection.csv`), then all others at the rate that was fastest there (`training.csv`; Figure 1
right).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import generators
from runner.core.studies import Context, Row
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.measures import ranks_by_layer
from runner.papers.batch_norm_rank.mlp_training import (
    features_of,
    load_images,
    measurement_bytes,
    parameter_bytes,
    probe_images,
    stages,
    starting_stack,
    training_bytes,
)
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.runs.devices import torch_dtype


@dataclass(frozen=True)
class LayerRank(Row):
    """One row per normalization, replicate and layer, before training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "replicate", "layer")

    normalization: str
    replicate: int
    layer: int  # 0: the input; every layer up to 64, some of those beyond
    matrix_rank: float  # singular values above sigma_max d eps; nan if not finite
    soft_rank: float  # rank_tau of the representation scaled to Tr M = d
    rank_bound: float  # r(H), Eq. (4)
    root_mean_square: float  # of the entries of H


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row per normalization, rate, selection replicate and epoch: what a rate is chosen by."""

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "replicate", "learning_rate", "epoch")

    normalization: str
    replicate: int
    learning_rate: float
    epoch: int
    train_loss: float  # nats; mean over the epoch's minibatches, each before its step
    train_accuracy: float  # likewise


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row per normalization, replicate and epoch, at the rate chosen for the normalization."""

    table: ClassVar[str] = "training"

    test_loss: float  # at the end of the epoch, with running statistics
    test_accuracy: float
    rank: float  # of the last hidden layer on `samples` training images; nan if diverged
    rank_bound: float
    selected_on: str  # the replicates that the rate was chosen on


def run(config: RankCollapse, context: Context) -> Iterator[LayerRank | TrialEpoch]:
    """Ranks by layer, then training: of the selection replicates, then of the others."""
    dtype = torch_dtype(config.dtype)
    data = None if config.data == "gaussian" else load_images(config, context)
    x = gaussian_inputs(config) if data is None else probe_images(config, data)
    features, classes = x.shape[-1], 1 if data is None else data.classes

    def start(normalization: str, replicates: range) -> MLP:
        return starting_stack(
            config,
            features,
            classes,
            normalization,
            replicates,
            init=config.init,
            activation=config.activation,
            skip=config.skip,
            dtype=dtype,
        )

    if context.restored is None:
        inputs = x.to(context.device, dtype).expand(config.replicates, -1, -1)
        total = len(config.normalizations) * (config.depth + 1)
        with context.progress(total, "measuring", unit="layers") as bar:
            for normalization in config.normalizations:
                network = start(normalization, range(config.replicates)).to(context.device)
                yield from metrics(normalization, network, inputs, config.tau, bar.update)
                del network  # before the next stack is drawn
    if not config.train:
        return
    for stage in stages(config, config.normalizations, context):
        networks = {name: start(name, stage.replicates) for name in config.normalizations}
        row = TrainedEpoch if stage.judged else TrialEpoch
        for normalization, columns in stage.train(networks, data):
            yield row(normalization=normalization, **columns)


def memory(config: RankCollapse) -> int:
    """Bytes at the peak: one stack after another is drawn, copied to the device and measured, from
    the inputs on; then all train.
    """
    itemsize, R = torch_dtype(config.dtype).itemsize, config.replicates
    features = features_of(config)
    stack = parameter_bytes(config, R, itemsize)
    inputs = 8 * R * config.samples * features if config.data == "gaussian" else 0
    measuring = measurement_bytes(config, R, itemsize, max(features, config.width))
    start = 2 * inputs + stack + max(stack, measuring)
    if not config.train:
        return start
    return max(start, training_bytes(config, config.normalizations, itemsize))


def gaussian_inputs(config: RankCollapse) -> Float[Tensor, "R N d"]:
    """Standard Gaussian inputs of the network's width, each replicate its own, in float64."""
    streams = generators(config.seed, config.replicates, "data")
    shape = (config.samples, config.width)
    return torch.stack([torch.randn(shape, generator=s, dtype=torch.float64) for s in streams])


def metrics(
    normalization: str,
    network: MLP,
    inputs: Float[Tensor, "R N features"],
    tau: float,
    tick: Callable[[], None],
) -> Iterator[LayerRank]:
    """The ranks of a stack with one network per replicate; `tick` is called after every layer."""
    for layer, measured, size in ranks_by_layer(network, inputs, tau, tick):
        for replicate in range(len(network)):
            yield LayerRank(
                normalization=normalization,
                replicate=replicate,
                layer=layer,
                matrix_rank=float(measured.matrix_rank[replicate]),
                soft_rank=float(measured.soft_rank[replicate]),
                rank_bound=float(measured.rank_bound[replicate]),
                root_mean_square=float(size[replicate]),
            )
