"""Study `bottleneck`: paper D, figure 1.

Networks of many depths L minimize `C(f) + lambda ||theta||^2` on a task of bottleneck rank k* = 2.
All depths and replicates are trained at once. A replicate has the same data at all depths.

The recipe `minimum` searches for the best solution of each depth because the paper's statements are
about minima. The recipes `plain` and `annealed` train by Adam.

The cost is `C = (1/N) sum_i ||f(x_i) - y_i||^2`; the zero network costs 1.
"""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from math import nan

import torch

from runner.core.choices import lookup
from runner.core.progress import Progress
from runner.core.studies import Context, Measured, network_name
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure import networks, theory
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.rows import (
    LayerTail,
    SingularValue,
    TrainedNetwork,
)
from runner.papers.bottleneck_structure.latent import D_IN, D_OUT, Task, draw_task
from runner.papers.bottleneck_structure.minima import Minimum, Problem, minima
from runner.papers.bottleneck_structure.networks import Network, differentiate
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.rows import TheoremCheck
from runner.papers.bottleneck_structure.spectra import ranks, spectra
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.theorems import theorem_rows
from runner.papers.bottleneck_structure.training import RidgeTrainer, start

torch_module = networks.torch_module


Rows = Iterator[TrainedNetwork | SingularValue | LayerTail | TheoremCheck | Measured]


def run(config: Bottleneck, context: Context) -> Rows:
    """Train all depths together, search minima if required, and yield measurements of each network.

    All measurements are in float64. Raises InputError for an unknown recipe.
    """
    order = [
        (L, replicate, number)
        for L in sorted(config.start_depths or config.depths, reverse=True)
        for replicate in range(config.replicates)
        for number in range(config.starts if config.recipe == "minimum" else 1)
    ]
    depths, replicates, numbers = map(list, zip(*order, strict=True))
    tasks = [_task(config, replicate) for replicate in range(config.replicates)]
    recipe = lookup("recipe", config.recipe, RECIPES | {"minimum": RECIPES["annealed"]})
    stack = DepthStack(depths, config.width, D_IN, D_OUT, context.device)
    start(stack, replicates, recipe, config.stream, numbers)
    rate = config.learning_rate or recipe.learning_rate
    trainer = RidgeTrainer(stack, recipe, config.ridge, rate, config.steps)
    x = torch.stack([tasks[replicate].x for replicate in replicates]).float().to(context.device)
    y = torch.stack([tasks[replicate].y for replicate in replicates]).float().to(context.device)
    trainer.run(lambda block: [(x, y)], context)
    if config.recipe == "minimum":
        for replicate, bar in trainer.after_training(config.replicates, context):
            trained = [stack.network(r) for r, owner in enumerate(replicates) if owner == replicate]
            by_depth = groupby(trained, lambda network: network.depth)
            starts = {L: list(networks) for L, networks in by_depth}
            task, tell = tasks[replicate], partial(_tell, bar, replicate)
            problem = Problem(task.x, task.y, config.ridge)
            before = None
            for minimum in minima(starts, config.depths, problem, tell).values():
                yield from measure(config, context, minimum, task, replicate, before)
                before = minimum.network
        return
    with context.progress(len(order), "measuring", unit="networks") as bar:
        for L, replicate, r in sorted(zip(depths, replicates, range(len(order)), strict=True)):
            minimum = Minimum(stack.network(r), nan)
            yield from measure(config, context, minimum, tasks[replicate], replicate)
            bar.update(depth=L)


def _task(config: Bottleneck, replicate: int) -> Task:
    stream = config.stream(replicate, "data")
    return draw_task(config.latent_rank, config.samples, config.test_samples, stream)


def _tell(bar: Progress, replicate: int, network: Network, loss: float) -> None:
    bar.update(0, replicate=replicate, depth=network.depth, loss=loss)


def measure(
    config: Bottleneck,
    context: Context,
    minimum: Minimum,
    task: Task,
    replicate: int,
    before: Network | None = None,
) -> Rows:
    """Yield all rows of one network.

    minimum: the best network of a depth, or a trained network without a loss. task: the data.
    before: the best network of the next smaller depth, if there is one.
    """
    network, x, y = minimum.network, task.x.mT, task.y.mT
    key = {"recipe": config.recipe, "depth": network.depth, "replicate": replicate}
    derivatives = differentiate(network, x)
    cost, norm = network.cost(x, y), float(network.parameter_norm())
    trained = TrainedNetwork(
        **key,
        **ranks(network, derivatives),
        parameter_norm=norm,
        train_cost=cost,
        test_cost=network.cost(task.x_test.mT, task.y_test.mT),
        loss=cost + config.ridge * norm,
        spread=minimum.spread,
        best_start=minimum.best_start,
        imbalance=theory.imbalance(network),
        ntk_trace=float(theory.ntk_trace(network, derivatives, x).mean()),
        jacobian=float(svdvals(derivatives.jacobian)[:, 0].max()),
        moved=network.cost(task.x_test.mT, before.activations(task.x_test.mT)[-1])
        if before
        else nan,
    )
    yield trained
    for layer, values in enumerate(spectra(network), start=1):
        for index, value in enumerate(values.tolist(), start=1):
            yield SingularValue(**key, layer=layer, index=index, singular_value=value)
    if 0 < (k := trained.rank) < min(D_IN, D_OUT, config.width):
        tails = [theory.representation_tail(network, x, k, biased) for biased in (False, True)]
        shares = theory.negative_shares(network, x)
        for layer, (tail, with_bias, negative) in enumerate(
            torch.stack([*tails, shares], 1).tolist(), start=1
        ):
            measured = {"tail": tail, "tail_with_bias": with_bias, "negative": negative}
            yield LayerTail(**key, rank=k, layer=layer, **measured)
    if 0 < (k := trained.jacobian_rank) < min(D_IN, D_OUT):
        yield from theorem_rows(network, x[: config.points], k, replicate)
    name, now = network_name(config.recipe, depth=network.depth), partial(network.traced, x)
    yield from context.hand_over(name, replicate, config.steps, now)
