"""The table `assumptions` of study `invariances`: do networks satisfy the paper's assumptions?"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.rows import AssumptionCheck
from runner.papers.training_invariances.invariances.trajectory import (
    Trajectory,
    networks,
    records,
)


def assumption_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[AssumptionCheck]:
    """Yield the rows of the table `assumptions`: checks of Assumptions 1 and 2 of paper C.

    Networks are checked at all measured times, and compared with the measured time before. The
    fraction of inactive neurons and the margins of linear networks are measured, too. flow: the
    trained networks. trajectory: their parameters at all measured times.
    """
    network, x, y = flow.objective.network, flow.objective.x, flow.objective.y
    before = trajectory.theta[0]
    largest = largest_margins(x, y) if network.is_linear else None
    for record, time in records(config):
        theta = trajectory.theta[record]
        changes = (theta.sign() != before.sign()).double().mean(-1)
        one, other = (v / v.norm(dim=-1, keepdim=True) for v in (theta, before))
        turned = 2 * torch.asin(((one - other).norm(dim=-1) / 2).clamp(max=1))
        smallest = theta.abs().amin(-1) / theta.square().mean(-1).sqrt()
        with torch.no_grad():
            scores, preactivations = network.forward(theta, x)
        off = [(z <= 0).all(-2) for z in preactivations]
        share = torch.cat(off, -1).double().mean(-1) if off else torch.zeros_like(smallest)
        changes, share = (c.where(smallest.isfinite(), torch.nan) for c in (changes, share))
        margin = torch.full_like(smallest, torch.nan)
        if largest is not None:
            unit = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
            beta = network.forward(theta, unit)[0]  # f(x) = beta x
            margin = (y * scores).amin(-1) / beta.norm(dim=-1) / largest
        measured = (changes, turned, smallest, share, margin)
        columns = zip(*(c.tolist() for c in measured), strict=True)
        for at, numbers in zip(networks(config, time), columns, strict=True):
            yield AssumptionCheck(*vars(at).values(), *numbers)
        before = theta


def largest_margins(x: Float[Tensor, "S n d"], y: Float[Tensor, "S n"]) -> Float[Tensor, " S"]:
    """Return the largest possible margin of each of S sets of separable examples, as of a hard SVM.

    x: inputs. y: labels -1 and 1. The margin is the maximum over unit vectors w of min_i y_i w x_i.
    It equals 1 / |w| of the shortest w with G w >= 1, where the rows of G are y_i x_i. To find w,
    let r be the residual of the least squares problem [G^T; 1] u = (0, ..., 0, 1) over u >= 0. Then
    w is -(r_1, ..., r_d) / r_{d+1} (Lawson and Hanson 1974, chapter 23).
    """
    margins = []
    for G in (y[..., None] * x).cpu().numpy():
        E = np.vstack((G.T, np.ones(len(G))))
        target = np.eye(len(E))[-1]
        residual = E @ nnls(E, target)[0] - target
        margins.append(-residual[-1] / np.linalg.norm(residual[:-1]))
    return x.new_tensor(margins)
