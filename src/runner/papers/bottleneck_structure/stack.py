"""Train many ReLU networks of different depths at once.

The R networks are sorted by depth, deepest first. The networks with a hidden layer l are therefore
the first ones, and one batched product computes this layer for all of them. Tensors have features
before samples, (R, features, N): the faster layout of these products.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.ops import aten

from runner.papers.bottleneck_structure.networks import Network


class DepthStack:
    """R networks `d_in -> width -> ... -> width -> d_out` of depths L_1 >= ... >= L_R >= 2.

    All parameters live in the flat tensor `parameters`, all gradients in `gradient`; the tensors of
    the layers are views of these two.
    """

    def __init__(
        self,
        depths: list[int],
        width: int,
        d_in: int,
        d_out: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if depths != sorted(depths, reverse=True) or depths[-1] < 2:
            raise ValueError(f"depths must fall and be at least 2: {depths}")
        self.depths, self.width, self.d_in, self.d_out = depths, width, d_in, d_out
        self.active = [sum(layer < L for L in depths) for layer in range(1, depths[0])]
        shapes = [(A, width, d_in if i == 0 else width) for i, A in enumerate(self.active)]
        shapes += [(len(depths), d_out, width)]
        shapes += [(*shape[:2], 1) for shape in shapes]  # first of weights, then of biases
        self.parameters = torch.zeros(sum(map(math.prod, shapes)), device=device, dtype=dtype)
        self.gradient = torch.zeros_like(self.parameters)
        self.W, self.b = _views(self.parameters, shapes)
        self.gW, self.gb = _views(self.gradient, shapes)
        # networks start..stop-1 have their output layer after hidden layer `last`
        self.groups = {
            L - 1: slice(depths.index(L), depths.index(L) + depths.count(L)) for L in set(depths)
        }
        self._H: list[Tensor] = []

    def load(self, r: int, network: Network) -> None:
        """Copy a network into the first neurons of network r, which may be wider."""
        layers = zip(*self._layers(r), network.weights, network.biases, strict=True)
        for W, b, weight, bias in layers:
            W.zero_()[: len(weight), : weight.shape[1]].copy_(weight)
            b.zero_()[: len(bias), 0].copy_(bias)

    def network(self, r: int) -> Network:
        """Return a float64 copy of network r on the CPU.

        Networks are measured on the CPU: their many small matrices are slow on a GPU, and the
        numbers are equal on every machine.
        """
        W, b = ([p.to("cpu", torch.float64, copy=True) for p in each] for each in self._layers(r))
        return Network(W, [each[:, 0] for each in b])

    def predict(self, x: Float[Tensor, "R d_in N"]) -> Float[Tensor, "R d_out N"]:
        """Return the outputs of every network on its inputs."""
        self._reserve(x)
        H, out = x, x.new_empty(len(self.depths), self.d_out, x.shape[-1])
        for i, A in enumerate(self.active):
            H = torch.baddbmm(self.b[i], self.W[i], H[:A], out=self._H[i]).relu_()
            if i + 1 in self.groups:
                g = self.groups[i + 1]
                torch.baddbmm(self.b[-1][g], self.W[-1][g], H[g], out=out[g])
        return out

    def descend(
        self, x: Float[Tensor, "R d_in N"], y: Float[Tensor, "R d_out N"]
    ) -> Float[Tensor, " R"]:
        """Return the cost `(1/N) sum_i ||f(x_i) - y_i||^2` of every network.

        Writes the gradient to `gradient`.
        """
        delta_out = self.predict(x).sub_(y)
        cost = delta_out.square().sum(1).mean(-1)
        delta_out.mul_(2 / x.shape[-1])
        torch.sum(delta_out, 2, keepdim=True, out=self.gb[-1])
        delta = None
        for i in reversed(range(len(self.active))):
            H, A = self._H[i], self.active[i]
            back = self._delta[i % 2][:A]
            if delta is not None:
                torch.bmm(self.W[i + 1].mT, delta, out=back[: len(delta)])
            if i + 1 in self.groups:
                g = self.groups[i + 1]
                torch.bmm(delta_out[g], H[g].mT, out=self.gW[-1][g])
                torch.bmm(self.W[-1][g].mT, delta_out[g], out=back[g])
            delta = aten.threshold_backward.grad_input(back, H, 0, grad_input=back)
            before = x if i == 0 else self._H[i - 1]
            torch.bmm(delta, before[:A].mT, out=self.gW[i])
            torch.sum(delta, 2, keepdim=True, out=self.gb[i])
        return cost

    def _layers(self, r: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return views of W_1 .. W_L and of b_1 .. b_L of network r."""
        hidden = self.depths[r] - 1
        return tuple([p[r] for p in (*each[:hidden], each[-1])] for each in (self.W, self.b))

    def _reserve(self, x: Tensor) -> None:
        """Allocate the activations once, since new memory in each step is slow."""
        N = x.shape[-1]
        if not self._H or self._H[0].shape[-1] != N:
            self._H = [x.new_empty(A, self.width, N) for A in self.active]
            self._delta = [x.new_empty(self.active[0], self.width, N) for _ in range(2)]


def _views(flat: Tensor, shapes: list[tuple[int, ...]]) -> tuple[list[Tensor], list[Tensor]]:
    """Return consecutive pieces of `flat` in these shapes: of the weights and of the biases."""
    pieces = flat.split([math.prod(shape) for shape in shapes])
    views = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    return views[: len(views) // 2], views[len(views) // 2 :]
