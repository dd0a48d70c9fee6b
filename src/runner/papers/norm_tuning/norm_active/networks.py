"""Networks of study `norm_active` during training, each at several learning rates.

    f(x) = sum_i relu(W x + b)_i                 W is a linear map of p: W = W2 diag(gamma) W1
    f(x) = sum_i relu(W2 relu(gamma * (W1 x) + beta) + b)_i

The first network is the second one with active hidden ReLUs (paper A, Lemma 7). R counts
replicates, K learning rates. Samples are columns: inputs are x (R, d, B), labels y (R, B). The
leading axis of parameters is R K, the rates of a replicate next to each other. Gradients are
written by hand.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

Gradients = dict[str, Tensor]


def repeated(start: Float[Tensor, "R *axes"], K: int) -> Float[Tensor, "RK *axes"]:
    """Return initial parameters, repeated for each of K learning rates."""
    return start.float().repeat_interleave(K, 0)


def in_both(frozen: Tensor) -> dict[torch.dtype, Tensor]:
    """Return a frozen tensor in the precision of training, and in that of measuring."""
    return {dtype: frozen.to(dtype) for dtype in (torch.float32, torch.float64)}


class Linear:
    """The network sum relu(W x + b), whose weights W are a linear map of the parameters p.

    - start: initial p.
    - to_weights: the rows are the weights W, row by row, that belong to each entry of p; None: p
      has the weights themselves.
    - d: width of the network. K: number of learning rates.
    """

    def __init__(
        self,
        start: Float[Tensor, "R n"],
        to_weights: Float[Tensor, "R n dd"] | None,
        d: int,
        K: int,
    ) -> None:
        self.R, self.K, self.d = len(start), K, d
        b = start.new_zeros(len(start), d, 1)
        self.parameters = {"p": repeated(start, K), "b": repeated(b, K)}
        self.to_weights = None if to_weights is None else in_both(to_weights)

    def outputs(self, x: Float[Tensor, "R d B"]) -> tuple[Tensor, Tensor, None]:
        """Return outputs (R, K, B), and last units before the ReLU (R, K, d, B)."""
        p, b = (self.parameters[name].to(x) for name in ("p", "b"))
        p = p.view(self.R, self.K, -1)
        W = p if self.to_weights is None else p @ self.to_weights[x.dtype]
        z = (W.reshape(self.R, self.K * self.d, self.d) @ x).view(self.R, self.K, self.d, -1)
        z = z + b.view(self.R, self.K, self.d, 1)
        return z.relu().sum(2), z, None

    def gradients(self, x: Float[Tensor, "R d B"], y: Float[Tensor, "R B"]) -> Gradients:
        """Return the gradients of the mean squared error by p and b."""
        f, z, _ = self.outputs(x)
        delta = (z > 0) * (f - y[:, None])[:, :, None] * (2 / y.shape[-1])
        of_W = (delta.view(self.R, self.K * self.d, -1) @ x.mT).view(self.R, self.K, -1)
        of_p = of_W if self.to_weights is None else of_W @ self.to_weights[x.dtype].mT
        of_b = delta.sum(-1, keepdim=True)
        return {"p": of_p.flatten(0, 1), "b": of_b.flatten(0, 1)}


class Frozen:
    """The two-layer network with frozen weights, of which gamma and all shifts are trained.

    - W1, W2: frozen weights.
    - shift: initial shift of each hidden unit; the last shifts cancel it.
    - K: number of learning rates.
    """

    def __init__(
        self, W1: Float[Tensor, "R m d"], W2: Float[Tensor, "R d m"], shift: float, K: int
    ) -> None:
        self.W1, self.W2, self.K = in_both(W1), in_both(W2), K
        ones = torch.ones_like(W1[..., :1])
        starts = {"gamma": ones, "beta": shift * ones, "b": -shift * W2.sum(-1, keepdim=True)}
        self.parameters = {name: repeated(start, K) for name, start in starts.items()}

    def outputs(self, x: Float[Tensor, "R d B"]) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs (R, K, B), last units before the ReLU, and the hidden units.

        The last units are (R, d, K, B), the hidden units (R, m, K, B).
        """
        shape, W2 = (-1, self.K), self.W2[x.dtype]
        gamma, beta, b = (p.to(x).unflatten(0, shape).mT for p in self._columns())
        h1 = self.W1[x.dtype] @ x
        active = torch.addcmul(beta[..., None], gamma[..., None], h1[:, :, None]).relu_()
        z = (W2 @ active.flatten(2)).view(len(W2), -1, self.K, x.shape[-1]).add_(b[..., None])
        return z.relu().sum(1), z, active

    def _columns(self) -> Iterator[Tensor]:
        return (p[..., 0] for p in self.parameters.values())

    def gradients(self, x: Float[Tensor, "R d B"], y: Float[Tensor, "R B"]) -> Gradients:
        """Return the gradients of the mean squared error by gamma, beta and b."""
        f, z, active = self.outputs(x)
        h1, W2 = self.W1[x.dtype] @ x, self.W2[x.dtype]
        delta = (z > 0) * (f - y[:, None])[:, None] * (2 / y.shape[-1])
        back = (W2.mT @ delta.flatten(2)).view_as(active).masked_fill_(active <= 0, 0)
        of_hidden = back @ torch.stack([h1, torch.ones_like(h1)], -1)
        parts = {"gamma": of_hidden[..., :1], "beta": of_hidden[..., 1:], "b": delta.sum(-1, True)}
        return {name: part.transpose(1, 2).flatten(0, 1) for name, part in parts.items()}


Trained = Linear | Frozen
"""A network during training. The names of shifts among its parameters begin with `b`."""
