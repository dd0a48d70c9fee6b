"""Study `annealing`: a control for the training procedures of paper D's figure 1.

Study `bottleneck` finds that annealed training fits at depths at which ordinary training fails. But
the two also differ in initial weights and learning rate. Here networks of many depths are trained
on the same tasks with annealed and with constant weight decay, from the same initial weights and
with the same learning rate. With the gain and the learning rate of a procedure of study
`bottleneck`, the networks are those of this study.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from runner.core.choices import lookup
from runner.core.studies import Context, Measured, network_name
from runner.papers.bottleneck_structure import networks
from runner.papers.bottleneck_structure.annealing.config import Annealing
from runner.papers.bottleneck_structure.annealing.rows import AnnealedNetwork
from runner.papers.bottleneck_structure.latent import D_IN, D_OUT, draw_task
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.spectra import spectra, threshold_rank
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import RidgeTrainer, start

torch_module = networks.torch_module


def run(config: Annealing, context: Context) -> Iterator[AnnealedNetwork | Measured]:
    """Train the networks of all depths and replicates together; yield a row for each network.

    Networks are measured in float64. The rows of the user's function `measure`, if there is one,
    are yielded, too. Raises InputError for an unknown recipe.
    """
    order = [
        (L, replicate)
        for L in sorted(config.depths, reverse=True)
        for replicate in range(config.replicates)
    ]
    depths, replicates = map(list, zip(*order, strict=True))
    tasks = [
        draw_task(config.latent_rank, config.samples, config.test_samples, config.stream(r, "data"))
        for r in range(config.replicates)
    ]
    recipe = replace(lookup("recipe", config.recipe, RECIPES), gain=config.gain)
    stack = DepthStack(depths, config.width, D_IN, D_OUT, context.device)
    start(stack, replicates, recipe, config.stream)
    trainer = RidgeTrainer(stack, recipe, config.ridge, config.learning_rate, config.steps)
    x = torch.stack([tasks[r].x for r in replicates]).float().to(context.device)
    y = torch.stack([tasks[r].y for r in replicates]).float().to(context.device)
    trainer.run(lambda block: [(x, y)], context)
    for L, r, place in sorted(zip(depths, replicates, range(len(order)), strict=True)):
        network, task = stack.network(place), tasks[r]
        cost = network.cost(task.x.mT, task.y.mT)
        norm = float(network.parameter_norm())
        yield AnnealedNetwork(
            config.recipe,
            config.gain,
            L,
            r,
            parameter_norm=norm,
            train_cost=cost,
            test_cost=network.cost(task.x_test.mT, task.y_test.mT),
            loss=cost + config.ridge * norm,
            rank=threshold_rank(spectra(network)[L // 2 - 1]),
        )
        name, now = network_name(config.recipe, depth=L), partial(network.traced, task.x.mT)
        yield from context.hand_over(name, r, config.steps, now)
