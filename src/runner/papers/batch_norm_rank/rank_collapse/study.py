"""Study `rank_collapse`: rank at initialization, and training, by depth (paper B, Section 1.1).

Fully connected networks with and without batch normalization start from the same weights. The rank
of their hidden representations is measured layer by layer before training (`metrics.csv`; Figure 2,
and Figure 1 left). Selection replicates, which choose the learning rate, are trained by SGD at
every learning rate of a grid (`selection.csv`). All other replicates are trained at the learning
rate that was fastest (`training.csv`; Figure 1 right). `protocol=authors` measures and trains as
the authors' code for Figure 1 does (module `authors`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import median

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.choices import lookup
from runner.core.progress import log
from runner.core.studies import Context, Measured
from runner.data.datasets import Dataset
from runner.networks import modules
from runner.networks.mlp import MLP
from runner.networks.precision import torch_dtype
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import (
    measured_layers,
    ranks,
    ranks_by_layer,
    root_mean_square,
)
from runner.papers.batch_norm_rank.mlp_training import (
    by_network,
    group,
    hand_over,
    last_ranks,
    starting_stack,
)
from runner.papers.batch_norm_rank.rank_collapse import authors
from runner.papers.batch_norm_rank.rank_collapse.config import AUTHORS_RATES, RankCollapse
from runner.papers.batch_norm_rank.rank_collapse.rows import LayerRank, TrainedEpoch, TrialEpoch
from runner.training.classification import StackTrainer, evaluate
from runner.training.rate_choice import choose, score, selection_range


def run(config: RankCollapse, context: Context) -> Iterator[LayerRank | TrialEpoch | Measured]:
    """Yield the rows of ranks by layer, then of training, as the parameter `protocol` selects.

    Raises InputError for an unknown protocol.
    """
    protocols = {"text": as_the_text, "authors": as_the_authors}
    yield from lookup("protocol", config.protocol, protocols)(config, context)


Start = Callable[[str, range], MLP]
"""Function that initializes networks of one normalization.

Its arguments are the normalization and the replicates; it returns one network for each of them.
"""


def as_the_text(
    config: RankCollapse, context: Context
) -> Iterator[LayerRank | TrialEpoch | Measured]:
    """Follow the paper: yield ranks by layer before training, then the epochs of training.

    The replicates that choose the learning rates are trained first. Raises InputError if the images
    are unavailable.
    """
    dtype = torch_dtype(config.dtype)
    data = None if config.data == "gaussian" else training_images(config, context).standardized()
    x = gaussian_inputs(config) if data is None else probed(config, data).flat()
    features, classes = x.shape[-1], 1 if data is None else data.classes
    kind = {"init": config.init, "activation": config.activation, "skip": config.skip}
    start = partial(starting_stack, config, features, classes, dtype=dtype, **kind)
    if context.restored is None:
        rows: list[LayerRank] = []
        inputs = x.to(context.device, dtype).expand(config.replicates, -1, -1)
        total = len(config.normalizations) * (config.depth + 1)
        with context.progress(total, "measuring", unit="layers") as bar:
            for normalization in config.normalizations:
                network = start(normalization, range(config.replicates)).to(context.device)
                layers = ranks_by_layer(network, inputs, config.tau, bar.update)
                for row in layer_rows(normalization, layers):
                    rows.append(row)
                    yield row
                yield from hand_over(context, normalization, network, inputs, 0)
                del network  # before the next networks are drawn
        tell_ranks(rows)
    if config.train:
        yield from choose_and_train(config, context, data, start)


def choose_and_train(
    config: RankCollapse, context: Context, data: Dataset, start: Start
) -> Iterator[TrialEpoch | Measured]:
    """Yield the epochs of trials, which choose the learning rates, then all other epochs.

    Trials have separate replicates, which give no other result. data: the images. start: function
    that initializes the networks of a normalization. A checkpoint also has the scores of the
    learning rates, and whether the trials are complete.
    """
    grid, names, restored = config.learning_rates, config.normalizations, context.restored
    selection = selection_range(config.replicates, config.selection_replicates)
    scores = torch.zeros(len(names), len(grid), len(selection), dtype=torch.float64)
    is_judged = torch.tensor(len(grid) == 1)
    choice_state = {"choice/scores": scores, "choice/is_judged": is_judged}
    if restored is not None:
        for name, tensor in choice_state.items():
            tensor.copy_(restored[name])
    lent = replace(
        context, checkpoint=lambda make: context.checkpoint(lambda: make() | choice_state)
    )

    def trainer_of(replicates: range, rates: dict[str, list[float]]) -> StackTrainer:
        groups = {
            n: group(start(n, replicates), grid_rates, replicates)
            for n, grid_rates in rates.items()
        }
        return StackTrainer(
            groups,
            data,
            config.batch_size,
            config.epochs,
            config.streams().generator,
            lent,
            config.optimizer,
        )

    if not is_judged:
        trainer = trainer_of(selection, dict.fromkeys(names, grid))
        for epoch, results in trainer.run("choosing learning rates"):
            for index, name in enumerate(names):
                result = results[name]
                scores[index] += score(result.train_accuracy, result.train_loss).view_as(
                    scores[index]
                )
                members = product(grid, selection)
                for (rate, r), row in zip(members, by_network(vars(result)), strict=True):
                    yield TrialEpoch(name, r, rate, epoch, **row)
        is_judged.fill_(True)
        lent = replace(lent, restored=None)
    choices = dict(
        zip(names, (choose(grid, of_network, selection) for of_network in scores), strict=True)
    )
    rates = {name: [choice.rate] for name, choice in choices.items()}
    trainer = trainer_of(range(config.replicates), rates)
    probe = probed(config, trainer.data).flat()
    for epoch, results in trainer.run():
        for name, choice in choices.items():
            network = trainer.groups[name].network
            test_loss, test_accuracy = evaluate(network, trainer.data.test)
            measured = vars(results[name]) | last_ranks(network, probe)
            measured |= {"test_loss": test_loss, "test_accuracy": test_accuracy}
            for r, columns in enumerate(by_network(measured)):
                keys = name, r, choice.rate, epoch
                yield TrainedEpoch(*keys, **columns, selected_on=choice.selected_on)
            yield from hand_over(context, name, network, probe, epoch)


def as_the_authors(config: RankCollapse, context: Context) -> Iterator[LayerRank | TrainedEpoch]:
    """Follow the authors' code: yield for each normalization ranks by layer, then training.

    Ranks are measured on the first minibatch. `test_loss` and `test_accuracy` are measured like the
    training accuracy, on 1000 images. With Gaussian inputs, only ranks are measured, as in figure
    2.
    """
    if config.data == "gaussian":
        yield from figure_2_as_the_authors(config, context)
        return
    data = training_images(config, context)
    names = config.normalizations
    done = int(context.restored["done"]) if context.restored else 0
    steps = len(data.train) // config.batch_size * config.epochs
    with context.progress(len(names) * steps, "training", done * steps) as bar:
        for index, name in enumerate(names[done:], start=done):
            trainer = authors.Trainer(name, data, config, context)
            x = trainer.first_minibatch()
            if context.restored is not None and index == done:
                trainer.restore(context.restored)
                bar.update(trainer.done)
            else:
                yield from layer_rows(name, ranks_by_layer(trainer.networks, x, config.tau))
            more = {"done": torch.tensor(index)}
            for epoch, scores in trainer.checkpointed(config.epochs, context, bar, more):
                test_loss, test_accuracy = trainer.score(trainer.data.test, "test")
                measured = vars(scores) | last_ranks(trainer.networks, x)
                measured |= {"test_loss": test_loss, "test_accuracy": test_accuracy}
                for r, columns in enumerate(by_network(measured)):
                    keys = name, r, trainer.rate, epoch
                    yield TrainedEpoch(*keys, **columns, selected_on=AUTHORS_RATES)


def figure_2_as_the_authors(config: RankCollapse, context: Context) -> Iterator[LayerRank]:
    """Yield the ranks by layer of every normalization, as in the authors' code for figure 2."""
    x = gaussian_inputs(config).mT.to(context.device)
    streams = [config.stream(r, "weights") for r in range(config.replicates)]
    layers = authors.layers_of_figure_2(x, config.activation, streams)
    measured = measured_layers(config.depth)
    with context.progress(config.depth, "measuring", unit="layers") as bar:
        for layer in range(1, config.depth + 1):
            hidden = next(layers)
            for name in config.normalizations if layer in measured else ():
                H = hidden[name]
                size = {"root_mean_square": root_mean_square(H).cpu()}
                yield from layer_rows(name, [(layer, vars(ranks(H, config.tau)) | size)])
            bar.update()


def tell_ranks(rows: list[LayerRank]) -> None:
    """Log the median ranks at some of the layers before training begins.

    rows: the ranks of all layers and replicates.
    """
    layers_measured = {row.layer for row in rows} - {0}  # beyond 64 not all layers are measured
    layers = sorted(
        {min(layers_measured, key=lambda n: abs(n - 2**k)) for k in range(16)}
        | {max(layers_measured)}
    )
    log.info("rank before training, and r, by layer:  %s", "".join(f"{n:>7}" for n in layers))
    for name in dict.fromkeys(row.normalization for row in rows):
        of_kind = [row for row in rows if row.normalization == name]
        for column, what in (("matrix_rank", "rank"), ("rank_bound", "r")):
            medians = [median(getattr(r, column) for r in of_kind if r.layer == n) for n in layers]
            log.info(
                "%38s:  %s",
                f"{ {'none': 'plain', 'batch': 'batch norm'}.get(name, name.replace('_', ' ')) },"
                f" {what}",
                "".join(f"{value:7.4g}" for value in medians),
            )


def torch_module(config: RankCollapse, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module.

    network: the network's name in `weights.safetensors`, which begins with its normalization.
    tensors: its stored tensors by name.
    """
    normalization, *_ = network.split("/")
    return modules.mlp(tensors, config.activation, normalization, config.skip)


def gaussian_inputs(config: RankCollapse) -> Float[Tensor, "R N d"]:
    """Return N standard Gaussian inputs with d features for each of R replicates, in float64."""
    streams = [config.stream(r, "data") for r in range(config.replicates)]
    shape = (config.samples, config.width)
    return torch.stack([torch.randn(shape, generator=s, dtype=torch.float64) for s in streams])


def layer_rows(
    normalization: str, layers: Iterable[tuple[int, Mapping[str, Float[Tensor, " R"]]]]
) -> Iterator[LayerRank]:
    """Yield one row for each layer and network; the networks are the replicates.

    layers: pairs of the number of a layer and its R measures by column.
    """
    for layer, columns in layers:
        for replicate, measured in enumerate(by_network(columns)):
            yield LayerRank(normalization, replicate, layer, **measured)
