"""Follow many networks along gradient flow, one for every replicate and learning rate.

A record is a time at which the parameters are stored and measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow, Objective
from runner.papers.training_invariances.invariances.graphs import (
    SHARE,
    Dag,
    build_graph,
    draw_weights,
)
from runner.papers.training_invariances.invariances.network import (
    TWIN_DISTANCE,
    Network,
    balance,
    build,
)
from runner.papers.training_invariances.invariances.problem import SIDE, LoadData, draw_examples
from runner.papers.training_invariances.invariances.rows import At


@dataclass
class Trajectory:
    """The parameters of S networks at all records, and the logarithm of the flow's time.

    A record is a time at which the parameters are stored.
    """

    theta: Float[Tensor, "records S P"]
    log_time: Float[Tensor, "records S"]


def network_of(config: Invariances, device: torch.device) -> Network | Dag:
    """Return the network of a run, or its graphs.

    For a layered architecture, the result is one `Network`; replicates differ only in their
    parameters. For `dense_graph` and `random_graph`, the result is a `Dag` on `device` with a graph
    for each replicate and learning rate. All replicates of a learning rate are together.
    """
    if config.architecture in SHARE:
        size = config.depth, config.width, SIDE**2
        graphs = build_graph(config.architecture, *size, config.stream, config.replicates)
        return graphs.repeated(len(config.learning_rates), device)
    size = config.depth, config.width, config.channels, SIDE
    return build(config.architecture, *size, config.negative_slope, config.biases)


def rates(config: Invariances) -> list[float]:
    """Return the learning rate of each network of a run, in the order of the networks.

    Rates ascend, and all replicates of a rate are together.
    """
    return [rate for rate in sorted(config.learning_rates) for _ in range(config.replicates)]


def start(
    config: Invariances, network: Network | Dag, device: torch.device, load_data: LoadData
) -> Flow:
    """Return the gradient flow of all networks at time zero.

    Networks of a replicate have the same examples and initial weights at all learning rates.
    load_data: loads a dataset, as `Context.load_data`. Raises InputError for unknown data, or if
    there are too few digits.
    """
    copies = len(config.learning_rates)
    x, y = (
        tensor.repeat(copies, *[1] * (tensor.ndim - 1))
        for tensor in draw_examples(config, load_data)
    )
    drawn = [draw(config, network, replicate) for replicate in range(config.replicates)]
    theta = torch.stack(drawn).repeat(copies, 1)
    return Flow(
        Objective(network, x.to(device), y.to(device), config.loss),
        theta.to(device),
        rates(config),
        config.integrator,
        config.normalized_time,
    )


def draw(config: Invariances, network: Network | Dag, replicate: int) -> Float[Tensor, " P"]:
    """Return the initial parameters of one replicate.

    With the parameter `balanced` of the run they satisfy D = 0 in the last linear layers.
    """
    stream = config.stream(replicate, "initialisation")
    if isinstance(network, Dag):
        return draw_weights(network, replicate, config.gain, TWIN_DISTANCE, stream)
    theta = network.draw(config.gain, config.active, config.twins, stream)
    return balance(network, theta) if config.balanced else theta


def follow(config: Invariances, flow: Flow, context: Context) -> Trajectory:
    """Follow the flow to the end of the run; return the parameters and log times at all records.

    Continues from the checkpoint if there is one, and writes a checkpoint after every record.
    Changes `flow` in place.
    """
    theta = flow.theta.new_empty(config.records + 1, *flow.theta.shape)
    log_time = flow.log_time.new_empty(config.records + 1, len(flow.log_time))
    state = {"trajectory": theta, "log_times": log_time, **flow.state()}
    done = 0
    if context.restored is None:
        theta[0], log_time[0] = flow.theta, flow.log_time
    else:
        done = int(context.restored["done"])
        for name, tensor in state.items():
            tensor.copy_(context.restored[name])
    duration = config.time / config.records
    steps = flow.steps(duration)

    def log_losses() -> torch.Tensor:
        return flow.objective.risk(flow.theta, log=True)[0]

    with context.progress(config.records * steps, "training", done=done * steps) as bar:
        for record in range(done + 1, config.records + 1):
            flow.advance(duration, lambda: bar.update(log_loss=log_losses))
            theta[record], log_time[record] = flow.theta, flow.log_time
            position = torch.tensor(record)
            context.checkpoint(lambda at=position: {**state, "done": at})
    return Trajectory(theta, log_time)


def records(config: Invariances) -> Iterator[tuple[int, float]]:
    """Yield the number and the time of each record, from time 0 to the end of the run."""
    for record in range(config.records + 1):
        yield record, config.time * record / config.records


def networks(config: Invariances, time: float) -> list[At]:
    """Return the columns that identify each network at a time, one entry for each network."""
    return [
        At(config.architecture, index % config.replicates, rate, time)
        for index, rate in enumerate(rates(config))
    ]
