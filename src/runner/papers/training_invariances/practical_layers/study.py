"""Study `practical_layers`: what gradient flow conserves in small classifiers of digits.

The function `modules.find_invariants` finds the conserved quantities of each network, before
training. Then each network is trained on ten classes of digits at several learning rates, up to
equal time T. The drift, the change of a conserved quantity in training, is proportional to the
learning rate.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from math import exp

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from runner.core.choices import lookup
from runner.core.studies import Context
from runner.papers.training_invariances.modules import Quantity, find_invariants
from runner.papers.training_invariances.practical_layers.config import PracticalLayers
from runner.papers.training_invariances.practical_layers.networks import NETWORKS
from runner.papers.training_invariances.practical_layers.rows import InvariantDrift
from runner.training.optimizers import MOMENTUM

METHODS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, fused=True),
    "momentum": partial(torch.optim.SGD, fused=True, momentum=MOMENTUM),
    "adam": partial(torch.optim.Adam, fused=True),
}
"""Optimizers by name. One loop over all weights saves a quarter of the time of a step."""


def run(config: PracticalLayers, context: Context) -> Iterator[InvariantDrift]:
    """Find what each network conserves, train it at each learning rate, and yield the drifts."""
    images = context.load_data("digits", config.seed).train
    total = len(config.networks) * config.replicates * len(config.learning_rates)
    with context.progress(total, "training", unit="networks") as bar:
        for replicate in range(config.replicates):
            order = torch.randperm(len(images), generator=config.stream(replicate, "images"))
            x, y = (part[order[: config.samples]] for part in (images.pixels, images.labels))
            x, y = ((x - x.mean()) / x.std()).double().to(context.device), y.to(context.device)
            for name in config.networks:
                network = start(config, name, replicate).to(context.device, x.dtype)
                quantities = [(q, parts(network, q)) for q in find_invariants(network, x)]
                for rate in config.learning_rates:
                    trained, time = train(config, network, x, y, rate, replicate)
                    key = name, replicate, rate, float(cross_entropy(trained(x), y).detach())
                    for quantity, masks in quantities:
                        D = quantity.matrix(network)
                        change = quantity.matrix(trained) - exp(-2 * config.weight_decay * time) * D
                        for part, mask in masks.items():
                            sizes = float((D * mask).norm()), float((change * mask).norm())
                            named = *key, str(quantity), part
                            yield InvariantDrift(*named, quantity.rate_of(mask), *sizes)
                    bar.update(1)


def parts(network: nn.Module, quantity: Quantity) -> dict[str, Float[Tensor, "c c"]]:
    """Return the entries of a matrix D that make up each part of D, as ones.

    The parts are `diagonal` and `all`, and for weights of an attention module also `heads`: the
    entries of two neurons of the same head.
    """
    one = torch.ones(quantity.neurons, quantity.neurons, dtype=torch.float64)
    masks = {"diagonal": one.diag().diag(), "all": one}
    for name, module in network.named_modules():
        sides = (f" of {name}." in side for side in quantity.terms)
        if isinstance(module, nn.MultiheadAttention) and all(sides):
            size = quantity.neurons // module.num_heads
            masks["heads"] = torch.block_diag(*[one[:size, :size]] * module.num_heads)
    return {part: mask.to(quantity.change.device) for part, mask in masks.items()}


def start(config: PracticalLayers, name: str, replicate: int) -> nn.Module:
    """Return a network with torch's initial weights.

    name: name of the network, a key of `networks.NETWORKS`. Raises InputError for an unknown name.
    """
    stream = config.stream(replicate, "initialisation")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=stream)))
        return lookup("networks", name, NETWORKS)(config.width)


def train(
    config: PracticalLayers,
    network: nn.Module,
    x: Float[Tensor, "n 1 8 8"],
    y: Int[Tensor, " n"],
    rate: float,
    replicate: int,
) -> tuple[nn.Module, float]:
    """Train a copy of a network on random minibatches; return it with the reached time T.

    - network: the network at its initialization, which does not change.
    - x, y: images and labels.
    - rate: learning rate.
    - replicate: decides the random minibatches.

    T is the sum of the learning rates; with momentum it is divided by 1 - momentum. Raises
    InputError for an unknown optimizer.
    """
    trained, stream = deepcopy(network), config.stream(replicate, "minibatches")
    method = lookup("optimizer", config.optimizer, METHODS)
    optimizer = method(trained.parameters(), lr=rate, weight_decay=config.weight_decay)
    pace = 1 - MOMENTUM if config.optimizer == "momentum" else 1.0
    steps = max(1, round(config.time * pace / rate))
    for _ in range(steps):
        chosen = torch.randperm(len(x), generator=stream)[: config.batch_size].to(y.device)
        optimizer.zero_grad()
        cross_entropy(trained(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return trained, steps * rate / pace
