"""Table `decomposition`: f against its tree network (Lemma 1), where the paths can be listed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from runner.core.studies import Row
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.graphs import Dag
from runner.papers.training_invariances.invariances.paths import (
    graph,
    graph_of,
    path_products,
    tree,
)
from runner.papers.training_invariances.invariances.trajectory import Trajectory

MOST_WEIGHTS, MOST_PATHS = 300, 3000
"""Of networks whose paths are listed for Lemma 1."""

LISTED = 2
"""Examples that f and its tree network are compared on."""


@dataclass(frozen=True)
class Decomposition(Row):
    """One row per replicate at the smallest rate, at the start and at the end."""

    table: ClassVar[str] = "decomposition"
    keys: ClassVar[tuple[str, ...]] = ("architecture", "replicate", "learning_rate", "time")

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock
    paths: int  # from the inputs to the output
    output: float  # largest |f(x)| over some examples
    error: float  # largest |f(x) - mu(rho(x))| there, mu the tree network of Lemma 1
    frozen_error: float  # the same with the signs of the start in mu


def decomposition_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[Decomposition]:
    """Lemma 1 at the start and at the end, where the paths can be listed."""
    network = flow.objective.network
    if trajectory.theta[0, 0].count_nonzero() > MOST_WEIGHTS:
        return
    for replicate in range(config.replicates):
        first = None
        for record, time in ((0, 0.0), (config.records, config.time)):
            theta = trajectory.theta[record].cpu()
            if isinstance(network, Dag):
                unrolled = graph_of(network, theta, replicate)
            else:
                weights = network.unpack(theta[replicate])
                unrolled = graph(network, weights)
            first = first or unrolled
            count = unrolled.count()
            if count > MOST_PATHS:
                return
            x = flow.objective.x[replicate, :LISTED].cpu()
            shared = x.expand(len(theta), *x.shape)
            outputs = network.forward(theta, shared)[0][replicate]
            products = [path_products(unrolled, example) for example in x]
            now, frozen = (
                torch.stack([tree(each, rho) for rho in products]) for each in (unrolled, first)
            )
            yield Decomposition(
                architecture=config.architecture,
                replicate=replicate,
                learning_rate=min(config.learning_rates),
                time=time,
                paths=count,
                output=float(outputs.abs().max()),
                error=float((outputs - now).abs().max()),
                frozen_error=float((outputs - frozen).abs().max()),
            )
