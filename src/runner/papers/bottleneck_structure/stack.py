"""Train many ReLU networks of different depths at once.

The R networks are sorted by depth, deepest first. The networks with a hidden layer l are therefore
the first ones, and one batched product computes this layer for all of them. Tensors have features
before samples, (R, features, N): the faster layout of these products.
"""

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor
from torch.ops import aten

from runner.papers.bottleneck_structure.networks import Network

THIN = 1e-2
"""Product of a neuron's incoming and outgoing norms at which `thin` removes the neuron.

The neurons that carry the bottleneck have a product of about 1.
"""


class DepthStack:
    """R networks `d_in -> width -> ... -> width -> d_out` of depths L_1 >= ... >= L_R >= 2.

    The flat tensor `parameters` has all parameters, and `gradient` all gradients. The tensors of
    the layers are views of these two. `widths` has the number of neurons of each hidden layer,
    which is `width` until `thin` removes dead neurons. Raises ValueError if the depths rise or one
    is below 2.
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
        self.widths = [width] * len(self.active)
        size = sum(map(math.prod, self._shapes()))
        self._use(torch.zeros(size, device=device, dtype=dtype))
        # networks start..stop-1 have their output layer after hidden layer `last`
        self.groups = {
            L - 1: slice(depths.index(L), depths.index(L) + depths.count(L)) for L in set(depths)
        }

    def _shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the weights, then of the biases."""
        ins, lasts = [self.d_in, *self.widths], [self.widths[L - 2] for L in self.depths]
        shapes = [(A, n, m) for A, n, m in zip(self.active, self.widths, ins, strict=False)]
        shapes += [(len(self.depths), self.d_out, max(lasts))]
        return shapes + [(*shape[:2], 1) for shape in shapes]

    def _use(self, parameters: Float[Tensor, " n"]) -> None:
        """Use these parameters, and allocate their gradients."""
        self.parameters, self.gradient = parameters, torch.zeros_like(parameters)
        self.W, self.b = _views(self.parameters, self._shapes())
        self.gW, self.gb = _views(self.gradient, self._shapes())
        self._H = []

    def resume(self, parameters: Float[Tensor, " n"], widths: list[int]) -> None:
        """Replace the parameters by the parameters of a checkpoint.

        parameters: all parameters in one vector. widths: number of neurons of each hidden layer.
        """
        self.widths = widths
        self._use(parameters)

    def through(self) -> list[Float[Tensor, "A n"]]:
        """Return for each neuron the norm of its incoming times the norm of its outgoing weights.

        The list has a tensor for each hidden layer, with a row for each of the A networks that have
        this layer. The bias of a neuron counts as an incoming weight.
        """
        products = []
        for i, A in enumerate(self.active):
            entering = (self.W[i].square().sum(2) + self.b[i][..., 0].square()).sqrt()
            leaving = entering.new_zeros(A, self.widths[i])
            if i + 1 < len(self.active):
                leaving[: self.active[i + 1]] = self.W[i + 1].norm(dim=1)
            if i + 1 in self.groups:
                g = self.groups[i + 1]
                leaving[g] = self.W[-1][g][..., : self.widths[i]].norm(dim=1)
            products.append(entering * leaving)
        return products

    def thin(self, *moments: Float[Tensor, " _"]) -> list[Float[Tensor, " _"]]:
        """Set dead neurons to zero, and remove as many as are zero in every network.

        A neuron is dead if its number of `through` is at most THIN. One neuron stays in each layer.
        All neurons of a network's first and last hidden layer stay: some of them grow again when
        weight decay is relaxed, and without them losses ended two percent higher. A neuron of zeros
        stays zero, so no network depends on the other networks of the stack.

        moments: tensors of Adam in the order of `parameters`. The same entries are removed from
        them; they are returned.
        """
        survivors, alive = [], []
        for i, through in enumerate(self.through()):
            lives = (through > THIN).scatter_(1, through.argmax(1, keepdim=True), value=True)
            lives[slice(None) if i == 0 else self.groups.get(i + 1, slice(0))] = True
            width = int(lives.sum(1).max())
            index = torch.where(lives, 1 + through, 0).topk(width, 1).indices.sort(1).values
            survivors.append(index)
            alive.append(lives.gather(1, index)[..., None].to(through))
        shapes, self.widths = self._shapes(), [index.shape[1] for index in survivors]
        flats = (self.parameters, *moments)
        parameters, *moments = (self._without(flat, shapes, survivors, alive) for flat in flats)
        self._use(parameters)
        return moments

    def _without(
        self, flat: Tensor, shapes: list[tuple], survivors: list[Tensor], alive: list[Tensor]
    ) -> Tensor:
        """Return the entries of a flat tensor that belong to surviving neurons of each layer.

        shapes: the shapes before the removal. survivors: (A, n), indices of neurons. alive: (A, n,
        1), 0 for neurons that are set to zero.
        """
        W, b = _views(flat, shapes)
        weights, biases = [], []
        for i, A in enumerate(self.active):
            rows = survivors[i][..., None]
            weight = W[i].gather(1, rows.expand(-1, -1, W[i].shape[2])) * alive[i]
            if i:
                columns = survivors[i - 1][:A, None].expand(-1, weight.shape[1], -1)
                weight = weight.gather(2, columns) * alive[i - 1][:A].mT
            weights.append(weight)
            biases.append(b[i].gather(1, rows) * alive[i])
        last = W[-1].new_zeros(self._shapes()[len(self.active)])
        for layer, g in self.groups.items():
            columns = survivors[layer - 1][g][:, None].expand(-1, self.d_out, -1)
            weight = W[-1][g].gather(2, columns) * alive[layer - 1][g].mT
            last[g, :, : weight.shape[2]] = weight
        return torch.cat([part.flatten() for part in (*weights, last, *biases, b[-1])])

    def load(self, r: int, network: Network) -> None:
        """Copy a network into network r of the stack; neurons beyond its width become zero.

        network: a network of the same depth as network r, and at most as wide.
        """
        layers = zip(*self._layers(r), network.weights, network.biases, strict=True)
        for W, b, weight, bias in layers:
            W.zero_()[: len(weight), : weight.shape[1]].copy_(weight)
            b.zero_()[: len(bias), 0].copy_(bias)

    def network(self, r: int) -> Network:
        """Return a float64 copy of network r on the CPU, of full width: removed neurons are zero.

        Networks are measured on the CPU. Their many small matrices would be slow on a GPU, and on
        the CPU the numbers are equal on every machine.
        """
        sizes = [self.d_in, *[self.width] * (self.depths[r] - 1), self.d_out]
        network = Network(
            [torch.zeros(n, m, dtype=torch.float64) for m, n in pairwise(sizes)],
            [torch.zeros(n, dtype=torch.float64) for n in sizes[1:]],
        )
        layers = zip(network.weights, network.biases, *self._layers(r), strict=True)
        for W, b, weight, bias in layers:
            W[: weight.shape[0], : weight.shape[1]] = weight.cpu()
            b[: len(bias)] = bias[:, 0].cpu()
        return network

    def predict(self, x: Float[Tensor, "R d_in N"]) -> Float[Tensor, "R d_out N"]:
        """Return the outputs of every network. x: R sets of N inputs, samples as columns."""
        self._reserve(x)
        H, out = x, x.new_empty(len(self.depths), self.d_out, x.shape[-1])
        for i, A in enumerate(self.active):
            H = torch.baddbmm(self.b[i], self.W[i], H[:A], out=self._H[i]).relu_()
            if i + 1 in self.groups:
                g = self.groups[i + 1]
                torch.baddbmm(self.b[-1][g], self._last(g, i), H[g], out=out[g])
        return out

    def descend(
        self, x: Float[Tensor, "R d_in N"], y: Float[Tensor, "R d_out N"]
    ) -> Float[Tensor, " R"]:
        """Compute the gradient; return the cost `(1/N) sum_i ||f(x_i) - y_i||^2` of every network.

        The gradient of the cost is written to the attribute `gradient`. x, y: inputs and targets of
        R networks, samples as columns.
        """
        delta_out = self.predict(x).sub_(y)
        cost = delta_out.square().sum(1).mean(-1)
        delta_out.mul_(2 / x.shape[-1])
        torch.sum(delta_out, 2, keepdim=True, out=self.gb[-1])
        delta = None
        for i in reversed(range(len(self.active))):
            H, A = self._H[i], self.active[i]
            back = self._delta[i % 2][: H.numel()].view_as(H)
            if delta is not None:
                torch.bmm(self.W[i + 1].mT, delta, out=back[: len(delta)])
            if i + 1 in self.groups:
                g = self.groups[i + 1]
                self.gW[-1][g][..., : H.shape[1]] = torch.bmm(delta_out[g], H[g].mT)
                torch.bmm(self._last(g, i).mT, delta_out[g], out=back[g])
            delta = aten.threshold_backward.grad_input(back, H, 0, grad_input=back)
            before = x if i == 0 else self._H[i - 1]
            torch.bmm(delta, before[:A].mT, out=self.gW[i])
            torch.sum(delta, 2, keepdim=True, out=self.gb[i])
        return cost

    def _layers(self, r: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return views of W_1 .. W_L and of b_1 .. b_L of network r."""
        hidden = self.depths[r] - 1
        W = [*(p[r] for p in self.W[:hidden]), self.W[-1][r][:, : self.widths[hidden - 1]]]
        return W, [p[r] for p in (*self.b[:hidden], self.b[-1])]

    def _last(self, g: slice, i: int) -> Float[Tensor, "_ d_out n"]:
        """Return the output weights of the networks g, whose last hidden layer is i."""
        return self.W[-1][g][..., : self.widths[i]]

    def _reserve(self, x: Tensor) -> None:
        """Allocate the activations once, since new memory in each step is slow."""
        N = x.shape[-1]
        if not self._H or self._H[0].shape[-1] != N:
            self._H = [x.new_empty(A, n, N) for A, n in zip(self.active, self.widths, strict=True)]
            self._delta = [x.new_empty(max(H.numel() for H in self._H)) for _ in range(2)]


def _views(flat: Tensor, shapes: list[tuple[int, ...]]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the weights and the biases, which are consecutive pieces of `flat` in these shapes."""
    pieces = flat.split([math.prod(shape) for shape in shapes])
    views = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    return views[: len(views) // 2], views[len(views) // 2 :]
