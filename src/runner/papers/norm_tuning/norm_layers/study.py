"""Study `norm_layers`: the construction of Theorem 1 of paper A in normalization layers of torch.

The target is g(x) = sum_i relu(W* x)_i of Appendix E, with standard Gaussian inputs. W1 (d^2, d)
and W2 (d, d^2) are frozen. Gamma and beta of Theorem 1 become the weights and biases of these
layers:

- `batch_norm` in evaluation mode: the affine map of Proposition 1, so the construction is exact.
- `batch_norm` in training mode: normalized by mean and variance of each batch.
- `layer_norm`: normalized by mean and variance of each sample over its features.
- `rms_norm`: normalized by the root mean square of each sample.

Without biases no gamma and beta of the last two layers can represent g. The network has the same
output for x and c x, c > 0, while g(c x) = c g(x). Of all functions with f(c x) = f(x) the best one
is E[||x||] g(x / ||x||). Its error is the column `lower_bound`.

With the frozen biases of Eq. (3) the output of the first layer depends on ||x||, and we know no
lower bound. With `fit_steps` above 0, gamma and beta are also fitted by L-BFGS, from ones and
zeros. Then we measure how much of ||x|| is linear in the output of the first layer. All
computations are in float64 on every device.
"""

from collections.abc import Iterator
from functools import partial
from math import exp, lgamma, sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.studies import Context
from runner.papers.norm_tuning.modules import as_modules
from runner.papers.norm_tuning.network import Layer, Network
from runner.papers.norm_tuning.norm_layers.config import NormLayers
from runner.papers.norm_tuning.norm_layers.rows import LayerAccuracy, NormReadout
from runner.papers.norm_tuning.theory import random_matrix, wide, wide_weights


def run(config: NormLayers, context: Context) -> Iterator[LayerAccuracy | NormReadout]:
    """Construct a network for each replicate, copy it into real layers, and yield the errors."""
    with context.progress(config.replicates, "solving", unit="networks") as bar:
        for replicate in range(config.replicates):
            yield from _measure(config, replicate)
            bar.update(replicate=replicate)


def _measure(config: NormLayers, replicate: int) -> Iterator[LayerAccuracy | NormReadout]:
    """Yield all rows of one replicate: one constructed network in every kind of layer."""
    d, stream = config.target_width, partial(config.stream, replicate)
    W = random_matrix(d, d, stream("target")) / sqrt(d)
    one = torch.ones(d, dtype=torch.float64)
    target = Network(((Layer(W, one, 0 * one, relu=True),),))
    frozen = wide_weights(target, None, stream("frozen weights"))
    before = random_matrix(config.samples, d, stream("running statistics"))
    x = random_matrix(config.samples, d, stream("inputs"))
    # The hidden ReLUs are active for all inputs of this run.
    input_norm = float(torch.cat([before, x]).norm(dim=1).max())
    constructed = wide(target, frozen, input_norm)
    g = target(x).sum(1)
    draw, biases = stream("biases"), None
    if config.biases:  # with the variances 1/d and 2/m of the weights of their layers, m = d^2
        b1, b2 = (torch.randn(n, generator=draw, dtype=torch.float64) for n in (d**2, d))
        biases = b1 / sqrt(d), b2 * sqrt(2 / d**2)
    for layer in config.layers:
        network = as_modules(layer, constructed.network, before, biases)
        name = f"{layer} with biases" if config.biases else layer
        key = {"target_width": d, "layer": name, "replicate": replicate}
        outputs = {("evaluation", 0): network(x).sum(1)}
        if layer == "batch_norm":
            for B in config.batch_sizes:
                outputs["training", B] = in_training_mode(network, x, B)
        elif config.fit_steps:
            for norm in network[1::3]:
                nn.init.ones_(norm.weight)
                nn.init.zeros_(norm.bias)
            yield NormReadout(**key, explained=explained_norm(network[:2], before, x))
            inputs = before[: config.fit_samples]
            fit(network, inputs, target(inputs).sum(1), config.fit_steps)
            outputs["fitted", 0] = network(x).sum(1)
        bounded = layer != "batch_norm" and not config.biases
        for (mode, B), f in outputs.items():
            error = f - g[: len(f)]
            yield LayerAccuracy(
                **key,
                mode=mode,
                batch_size=B,
                relative_mse=float(error.square().mean() / g.var()),
                max_abs_error=float(error.abs().max()),
                condition_number=constructed.condition_number,
                input_norm=input_norm,
                lower_bound=scale_invariant_error(d, g) if bounded else 0.0,
            )


def in_training_mode(
    network: nn.Sequential, x: Float[Tensor, "N d"], batch_size: int
) -> Float[Tensor, " n"]:
    """Return the outputs of a network in training mode, each summed over the last units.

    x: N inputs, which are divided into batches. Inputs at the end that do not fill a batch are not
    used, so there may be fewer outputs.
    """
    network.train()
    whole = x[: len(x) // batch_size * batch_size]
    f = torch.cat([network(batch).sum(1) for batch in whole.split(batch_size)])
    network.eval()
    return f


def explained_norm(
    first: nn.Module, before: Float[Tensor, "N d"], x: Float[Tensor, "N d"]
) -> float:
    """Return which fraction of the variance of ||x|| a linear map of a layer's output explains.

    - first: the layer, with its normalization.
    - before: inputs on which the linear map is fitted.
    - x: inputs on which the fraction is measured.

    The fraction is negative if predicting the mean of ||x|| is better.
    """

    def shown(inputs: Float[Tensor, "N d"]) -> Float[Tensor, "N n"]:
        return nn.functional.pad(first(inputs), (0, 1), value=1.0)

    norms = before.norm(dim=1, keepdim=True)
    read = torch.linalg.lstsq(shown(before), norms, rcond=1e-10, driver="gelsd").solution
    r = x.norm(dim=1)
    return float(1 - (shown(x) @ read - r[:, None]).square().mean() / r.var())


def fit(
    network: nn.Sequential, x: Float[Tensor, "N d"], g: Float[Tensor, " N"], steps: int
) -> None:
    """Fit gamma and beta of a network to targets g by L-BFGS, in place.

    The loss is the mean squared error of the network's output, summed over its last units, divided
    by the variance of g. steps: the largest number of steps.
    """
    norms = network[1::3].requires_grad_()
    until_the_end = {"max_iter": steps, "tolerance_grad": 0, "tolerance_change": 0}
    search = {"history_size": 20, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS(norms.parameters(), **until_the_end, **search)

    def closure() -> Float[Tensor, ""]:
        optimizer.zero_grad()
        loss = (network(x).sum(1) - g).square().mean() / g.var()
        loss.backward()
        return loss

    optimizer.step(closure)
    norms.requires_grad_(False)


def scale_invariant_error(d: int, g: Float[Tensor, " N"]) -> float:
    """Return the smallest possible error of a function f with f(c x) = f(x) for all c > 0.

    The error is the mean squared error divided by the variance of g. d: dimension of the inputs x,
    drawn from N(0, I). g: values of the target at N inputs. The target must satisfy g(c x) = c
    g(x).

    With x = r u, |u| = 1, the best f is E[r] g(u). Its mean squared error is `Var(r) E[g(u)^2] =
    Var(r) E[g(x)^2] / d`. This uses E[r^2] = d and `E[r] = sqrt(2) Gamma((d+1)/2) / Gamma(d/2)`.
    """
    mean = sqrt(2) * exp(lgamma((d + 1) / 2) - lgamma(d / 2))
    return float((d - mean**2) / d * g.square().mean() / g.var())
