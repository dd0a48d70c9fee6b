"""Table `assumptions`: whether what the paper assumes is met along the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from runner.core.studies import Row
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.trajectory import Trajectory, rates, records


@dataclass(frozen=True)
class AssumptionCheck(Row):
    """One row per replicate, rate and time."""

    table: ClassVar[str] = "assumptions"
    keys: ClassVar[tuple[str, ...]] = ("architecture", "replicate", "learning_rate", "time")

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock
    sign_changes: float  # share of weights with another sign than at the record before
    turned: float  # angle between the weights here and at the record before, in radians
    smallest: float  # least |weight| over their root mean square: no zero in the direction
    off: float  # share of nonlinear neurons that no example switches on


def assumption_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[AssumptionCheck]:
    """Assumptions 1 and 2 between one record and the next, and the neurons that are off."""
    before = trajectory.theta[0]
    for record, time in records(config):
        theta = trajectory.theta[record]
        changes = (theta.sign() != before.sign()).double().mean(-1)
        one, other = (v / v.norm(dim=-1, keepdim=True) for v in (theta, before))
        turned = 2 * torch.asin(((one - other).norm(dim=-1) / 2).clamp(max=1))
        smallest = theta.abs().amin(-1) / theta.square().mean(-1).sqrt()
        with torch.no_grad():
            _, preactivations = flow.objective.network.forward(theta, flow.objective.x)
        off = torch.cat([(z <= 0).all(-2) for z in preactivations], -1) if preactivations else None
        share = torch.zeros_like(smallest) if off is None else off.double().mean(-1)
        changes, share = (c.where(smallest.isfinite(), torch.nan) for c in (changes, share))
        columns = zip(*(c.tolist() for c in (changes, turned, smallest, share)), strict=True)
        for index, (rate, numbers) in enumerate(zip(rates(config), columns, strict=True)):
            replicate = index % config.replicates
            yield AssumptionCheck(config.architecture, replicate, rate, time, *numbers)
        before = theta
