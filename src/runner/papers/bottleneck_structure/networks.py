"""A ReLU network of paper D, its activations, and its derivatives at a set of points."""

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.arrays import takes_arrays
from runner.networks import modules

Inputs = Float[Tensor, "N d_in"]
"""Points of the input space, one per row."""
PerPoint = Float[Tensor, " N"]
"""One number per point."""
Jacobians = Float[Tensor, "N d_out d_in"]
"""J f(x), the derivative of the output by the input, at each point."""


@dataclass(frozen=True)
class Network:
    """A fully connected ReLU network of L layers (paper D, section 2).

    weights: W_1 .. W_L with the shapes (n_l, n_{l-1}). biases: b_1 .. b_L with the shapes (n_l).
    The output `f(x)` is the last pre-activation.
    """

    weights: list[Float[Tensor, "_ _"]]
    biases: list[Float[Tensor, " _"]]

    @property
    def depth(self) -> int:
        """Return L, the number of weight matrices."""
        return len(self.weights)

    @takes_arrays()
    def parameter_norm(self) -> Float[Tensor, ""]:
        """Return `||theta||^2`, the sum of all squared weights and biases."""
        return sum(p.square().sum() for p in (*self.weights, *self.biases))

    @takes_arrays()
    def activations(self, x: Inputs) -> list[Float[Tensor, "N _"]]:
        """Return the input x, the hidden activations alpha_1(x) to alpha_{L-1}(x), and f(x)."""
        alphas = [x]
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            alphas.append((alphas[-1] @ W.mT).add_(b).relu_())  # one tensor per layer, no copies
        return [*alphas, (alphas[-1] @ self.weights[-1].mT).add_(self.biases[-1])]

    @takes_arrays()
    def cost(self, x: Inputs, y: Float[Tensor, "N d_out"]) -> float:
        """Return `C = (1/N) sum_i ||f(x_i) - y_i||^2`. x, y: inputs and targets, one per row."""
        return float((self.activations(x)[-1] - y).square().sum(1).mean())

    @takes_arrays()
    def traced(self, x: Inputs) -> dict[str, Tensor]:
        """Return the tensors of the network by name.

        W1, b1, W2, ... are weights and biases, x the inputs, H1, H2, ... the hidden activations.
        """
        named = {"W": self.weights, "b": self.biases, "H": self.activations(x)[1:-1]}
        numbered = {f"{n}{i}": t for n, ts in named.items() for i, t in enumerate(ts, start=1)}
        return {"x": x, **numbered}


def random_network(sizes: list[int], gain: float, stream: torch.Generator) -> Network:
    """Return a network with weights from `N(0, gain^2 / fan_in)`, in float64; biases are zero.

    sizes: n_0 .. n_L, the widths of the input, the hidden layers and the output. stream: the random
    generator.
    """
    drawn = [
        torch.randn(n, fan_in, generator=stream, dtype=torch.float64) * (gain / sqrt(fan_in))
        for fan_in, n in pairwise(sizes)
    ]
    return Network(drawn, [W.new_zeros(len(W)) for W in drawn])


def torch_module(config: object, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module.

    tensors: weights and biases by the names W1, b1, W2, ... The arguments config and network are
    not used.
    """
    return modules.mlp(tensors)


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of a network at N points, in the notation of the theorems; index 0 is l = 1.

    The layers are `alpha_l = D_l (W_l alpha_{l-1} + b_l)`. D_l is diagonal with entries 0 (inactive
    neuron) and 1; D_L = 1.
    """

    active: list[Float[Tensor, "N _"]]
    """The diagonals of D_l."""
    inner: list[Float[Tensor, "N _ d_in"]]
    """J alpha_{l-1}(x): derivative of the input of layer l by x."""
    outer: list[Float[Tensor, "N d_out _"]]
    """J(alpha~_l -> f)(x): derivative of the output by the pre-activations of layer l."""
    jacobian: Jacobians
    """J f(x)."""


@takes_arrays()
def differentiate(network: Network, x: Inputs) -> Derivatives:
    """Return the Jacobians at each point: of f, from the input to each layer, from each layer to f.

    They are products of the weight matrices, in which rows of inactive neurons are zero.
    """
    N, d_in = x.shape
    hidden = network.activations(x)[1:]
    active = [(h > 0).to(x.dtype) for h in hidden[:-1]] + [torch.ones_like(hidden[-1])]
    inner = [torch.eye(d_in, dtype=x.dtype, device=x.device).expand(N, d_in, d_in)]
    for W, D in zip(network.weights, active, strict=True):
        inner.append((W @ inner[-1]).mul_(D[..., None]))
    d_out = len(network.biases[-1])
    outer = [torch.eye(d_out, dtype=x.dtype, device=x.device).expand(N, d_out, d_out)]
    for W, D in zip(network.weights[:0:-1], active[-2::-1], strict=True):
        outer.insert(0, (outer[0] @ W).mul_(D[:, None, :]))
    return Derivatives(active, inner[:-1], outer, inner[-1])
