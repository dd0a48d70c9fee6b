"""Study `norm_layers`: Theorem 1's construction, exported into `torch.nn` layers.

The target g(x) = sum_i relu(W* x)_i of Appendix E with standard Gaussian inputs; frozen W1 (d^2, d)
and W2 (d, d^2); the scales and shifts of Theorem 1 as the weights and biases of

- `batch_norm` in evaluation mode: the affine map of Proposition 1, exact;
- `batch_norm` in training mode: mean and variance are those of each batch;
- `layer_norm`: mean and variance are those of each sample, over its features.

Without biases no scales and shifts in LayerNorm can represent g: the network gives the same for x
and c x, c > 0, while g(c x) = c g(x). Of all functions f(c x) = f(x) the best is
E[||x||] g(x / ||x||), whose error `lower_bound` is. In float64, whatever the device.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, lgamma, sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.papers.norm_tuning.modules import as_modules
from runner.papers.norm_tuning.network import Block, Layer, Network, relu_network
from runner.papers.norm_tuning.norm_layers.config import NormLayers
from runner.papers.norm_tuning.solvers import system_bytes
from runner.papers.norm_tuning.theory import wide_layer, wide_weights


@dataclass(frozen=True)
class LayerAccuracy(Row):
    """One row per layer, mode and batch size, and replicate."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (
        "target_width",
        "layer",
        "mode",
        "batch_size",
        "replicate",
    )

    target_width: int  # d
    layer: str  # batch_norm, layer_norm
    mode: str  # evaluation, training
    batch_size: int  # of training mode; 0 in evaluation mode
    replicate: int
    relative_mse: float  # mean squared error over the variance of g: 1 is a constant predictor
    max_abs_error: float  # largest |f(x) - g(x)|
    condition_number: float  # of the Khatri-Rao matrix
    input_norm: float  # the largest, for which the ReLUs are switched on
    lower_bound: float  # relative_mse that no scales and shifts undercut; 0 for batch_norm


def run(config: NormLayers, context: Context) -> Iterator[LayerAccuracy]:
    """Construct, export, and compare, replicate by replicate."""
    with context.progress(config.replicates, "solving", unit="networks") as bar:
        for replicate in range(config.replicates):
            yield from _measure(config, replicate)
            bar.update(replicate=replicate)


def memory(config: NormLayers) -> int:
    """Bytes at the peak: the frozen weights, and either the linear system or the hidden layer of
    all samples, before and after its normalization, with what that computes in between.
    """
    d, m = config.target_width, config.target_width**2
    return 8 * 3 * 2 * m * d + max(system_bytes(d, d, m, False), 8 * config.samples * (4 * m + d))


def _measure(config: NormLayers, replicate: int) -> Iterator[LayerAccuracy]:
    d = config.target_width
    stream = generator(config.seed, replicate, "target")
    W = torch.randn(d, d, generator=stream, dtype=torch.float64) / sqrt(d)
    target = relu_network([W], [W.new_zeros(d)])
    ((W1, W2),) = wide_weights(target, None, generator(config.seed, replicate, "frozen weights"))
    before, x = (
        torch.randn(
            config.samples, d, generator=generator(config.seed, replicate, purpose), dtype=W.dtype
        )
        for purpose in ("running statistics", "inputs")
    )
    # The hidden ReLUs are switched on for every input that will be seen.
    input_norm = float(torch.cat([before, x]).norm(dim=1).max())
    found = wide_layer(W1, W2, W, W.new_zeros(d), input_norm)
    layers = (
        Layer(W1, found.gamma1, found.beta1, relu=True),
        Layer(W2, found.gamma2, found.beta2, relu=True),
    )
    constructed = Network((Block(layers),))
    g = (x @ W.mT).relu().sum(1)
    key = {
        "target_width": d,
        "replicate": replicate,
        "condition_number": found.scales.condition_number,
        "input_norm": input_norm,
    }

    network = as_modules("batch_norm", constructed, before)
    outputs = {("batch_norm", "evaluation", 0): network(x).sum(1)}
    for B in config.batch_sizes:
        outputs["batch_norm", "training", B] = in_training_mode(network, x, B)
    network = as_modules("layer_norm", constructed, before)
    outputs["layer_norm", "evaluation", 0] = network(x).sum(1)
    for (layer, mode, B), f in outputs.items():
        error = f - g[: len(f)]
        yield LayerAccuracy(
            **key,
            layer=layer,
            mode=mode,
            batch_size=B,
            relative_mse=float(error.square().mean() / g.var()),
            max_abs_error=float(error.abs().max()),
            lower_bound=scale_invariant_error(d, g) if layer == "layer_norm" else 0.0,
        )


def in_training_mode(
    network: nn.Sequential, x: Float[Tensor, "N d"], batch_size: int
) -> Float[Tensor, " n"]:
    """The summed outputs in training mode, batch by batch; what fills no batch is left out."""
    network.train()
    whole = x[: len(x) // batch_size * batch_size]
    f = torch.cat([network(batch).sum(1) for batch in whole.split(batch_size)])
    network.eval()
    return f


def scale_invariant_error(d: int, g: Float[Tensor, " N"]) -> float:
    """Least error of any f with f(c x) = f(x) for c > 0, over the variance of g; x Gaussian in R^d.

    With x = r u the best is f = E[r] g(u), and its error Var(r) E[g(u)^2] = Var(r) E[g^2] / d, from
    E[r^2] = d and E[r] = sqrt 2 Gamma((d+1)/2) / Gamma(d/2).
    """
    mean = sqrt(2) * exp(lgamma((d + 1) / 2) - lgamma(d / 2))
    return float((d - mean**2) / d * g.square().mean() / g.var())
