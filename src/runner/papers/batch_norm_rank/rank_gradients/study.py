"""Study `rank_gradients`: does batch norm, which keeps the rank, make gradients explode?

Random networks have L hidden layers of width d. Their N inputs are standard Gaussian with d
features, and each has one of ten random labels. Nothing is trained. The study measures the
gradients of the mean cross entropy by the weights of the first and the last hidden layer. It also
measures the rank of the last hidden layer. All numbers are float64, so that gradients neither
overflow nor vanish.
"""

from collections.abc import Iterator
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.studies import Context
from runner.data import CLASSES
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.measures import last_hidden, ranks
from runner.papers.batch_norm_rank.mlp_training import by_network, drawn_stack
from runner.papers.batch_norm_rank.rank_gradients.config import RankGradients
from runner.papers.batch_norm_rank.rank_gradients.rows import Gradients
from runner.training.classification import loss_and_hits


def run(config: RankGradients, context: Context) -> Iterator[Gradients]:
    """Yield one row for each normalization, width, depth and replicate."""
    points = list(product(config.widths, config.depths, config.normalizations))
    with context.progress(len(points), "measuring", unit="stacks") as bar:
        for width, depth, normalization in points:
            data, weights = (
                [config.stream(r, f"{part} L={depth} d={width}") for r in range(config.replicates)]
                for part in ("data", "weights")
            )
            sizes = [width] * (depth + 1) + [CLASSES]
            network = drawn_stack(sizes, weights, normalization, config.init, config.activation)
            x, labels = (
                torch.stack(parts).to(context.device)
                for parts in zip(
                    *(gaussian_batch(config.samples, width, stream) for stream in data), strict=True
                )
            )
            measured = measure(network.to(context.device), x, labels)
            for replicate, columns in enumerate(by_network(measured)):
                yield Gradients(normalization, width, depth, replicate, **columns)
            bar.update()


def gaussian_batch(
    samples: int, width: int, stream: torch.Generator
) -> tuple[Float[Tensor, "N d"], Int[Tensor, " N"]]:
    """Return N standard Gaussian inputs with d features, and a random label for each.

    samples: N. width: d. stream: the generator of inputs and labels.
    """
    x = torch.randn(samples, width, generator=stream, dtype=torch.float64)
    return x, torch.randint(CLASSES, (samples,), generator=stream)


def measure(
    network: MLP, x: Float[Tensor, "R N d"], labels: Int[Tensor, "R N"]
) -> dict[str, Float[Tensor, " R"]]:
    """Return gradient norms of the first and last hidden layer and ranks of the last, by column.

    The norms are Frobenius norms of the gradients of the mean cross entropy by the weights. Batch
    normalization uses the statistics of the N samples. x, labels: inputs and classes of R networks.
    """
    weights = [network.parameters[f"W{layer}"].requires_grad_() for layer in (1, network.depth)]
    losses, _ = loss_and_hits(network.logits(x, "probe"), labels)
    norms = [torch.linalg.matrix_norm(g) for g in torch.autograd.grad(losses.sum(), weights)]
    measured = ranks(last_hidden(network, x))
    columns = {"matrix_rank": measured.matrix_rank, "rank_bound": measured.rank_bound}
    return dict(zip(("first_gradient", "last_gradient"), norms, strict=True)) | columns
