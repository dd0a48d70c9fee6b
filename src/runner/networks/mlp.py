"""Fully connected networks, R of them in one stack of tensors.

Layers compute `H_{l+1} = sigma(BN(W_{l+1} H_l + b_{l+1}))`, in the layout of paper B: `H_l` has the
shape (R, d, N), with samples as columns. One batched product therefore advances all networks. Each
network computes the same as it would alone.
"""

from collections.abc import Iterator
from math import inf, isinf
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.choices import lookup
from runner.networks.activations import activation_of
from runner.networks.normalization import NORMALIZATIONS, batch_norm, batch_norm_no_mean
from runner.networks.own_calls import method_of

HUGE = 1e8
"""The smallest gamma at which the skip connection is lost by rounding in float32.

Squares of larger gammas soon leave the range of float32.
"""

Mode = Literal["train", "probe", "evaluate"]
"""Which statistics batch normalization uses. train: statistics of the batch, which are also
recorded. probe: statistics of the batch. evaluate: the recorded statistics."""

MODES: dict[str, tuple[bool, bool]] = {
    "train": (True, True),
    "probe": (False, False),
    "evaluate": (True, False),
}
"""Two flags by mode: whether running statistics are involved, and whether they are updated."""


def skipped(H: Tensor, Z: Tensor, gamma: float, normalized: bool) -> Tensor:
    """Return `H + gamma Z`, or Z if there is no skip connection.

    H: the input of a layer. Z: its pre-activations. If H and Z differ in shape, there is no skip
    connection. gamma: the factor of Z; inf: no skip connection. normalized: whether batch
    normalization follows. If so, a result with a huge gamma is divided by gamma, since
    normalization removes the scale of its input.
    """
    if isinf(gamma) or H.shape != Z.shape:
        return Z
    # Normalization removes the scale of its input, so a huge gamma divides the other term.
    return H / gamma + Z if gamma > HUGE and normalized else H + gamma * Z


class MLP:
    """R networks, each with L hidden layers and a linear classifier `W_{L+1} H_L + b_{L+1}`.

    - weights: `(R, out, in)` for each of the L + 1 layers.
    - biases: `(R, out)` for each layer. Batch normalization that subtracts the mean removes the
      effect of hidden biases, so networks with this normalization have none.
    - skip: gamma in `BN(H + gamma (W H + b))`; inf: no skip connection. The first layer has a skip
      connection only if it keeps the width.

    Weights and biases are copied, since training changes a network's tensors in place. Raises
    InputError for an unknown activation or normalization.
    """

    def __init__(
        self,
        weights: list[Float[Tensor, "R _ _"]],
        biases: list[Float[Tensor, "R _"]],
        activation: str = "relu",
        normalization: str = "none",
        skip: float = inf,
    ) -> None:
        self.sigma = activation_of(activation)
        norm = method_of("normalization", normalization, NORMALIZATIONS)
        self.centred = norm if isinstance(norm, bool) else None
        self.of_sample = norm if callable(norm) else None
        self.activation, self.normalization, self.skip = activation, normalization, skip
        self.depth = len(weights) - 1
        self.parameters: dict[str, Tensor] = {}
        self.running: dict[str, Tensor] = {}
        for layer, (W, b) in enumerate(zip(weights, biases, strict=True), start=1):
            self.parameters[f"W{layer}"] = W.detach().clone()
            if layer > self.depth or not self.centred:
                self.parameters[f"b{layer}"] = b.detach().clone()
            if layer <= self.depth and norm is not None:
                self.parameters[f"scale{layer}"] = torch.ones_like(b)
                self.parameters[f"shift{layer}"] = torch.zeros_like(b)
            if layer <= self.depth and self.centred is not None:
                self.running[f"variance{layer}"] = torch.ones_like(b)
                if self.centred:
                    self.running[f"mean{layer}"] = torch.zeros_like(b)

    def __len__(self) -> int:
        return len(self.parameters["W1"])

    @property
    def is_normalized(self) -> bool:
        """Return whether hidden layers are normalized, by batch or by sample."""
        return self.centred is not None or self.of_sample is not None

    @property
    def homogeneous(self) -> bool:
        """Return whether multiplying the input by c > 0 also multiplies all hidden layers by c."""
        biases = [b for name, b in self.parameters.items() if name.startswith("b")]
        unbiased = not self.is_normalized and not any(b.any() for b in biases)
        return unbiased and self.sigma.below is not None

    def layer(
        self, layer: int, H: Float[Tensor, "R _ N"], mode: Mode = "train"
    ) -> Float[Tensor, "R d N"]:
        """Return the hidden representations H_l of layer l, from H = H_{l-1}.

        layer: l, from 1 to L. mode: the statistics that batch normalization uses, see `Mode`. The
        mode `train` also updates running statistics.
        """
        Z = self._affine(layer, H)
        Z = skipped(H, Z, self.skip, self.is_normalized)
        shape = Z.shape
        if self.centred is not None:
            Z = self._normalize(layer, Z.reshape(1, -1, shape[-1]), mode)
        elif self.of_sample is not None:
            scale, shift = (self.parameters[f"{n}{layer}"][..., None] for n in ("scale", "shift"))
            Z = torch.addcmul(shift, self.of_sample(Z), scale)
        # In place before the view: no other reference to Z exists, and Z is not copied.
        return self.sigma.function(Z).view(shape)

    def hidden(
        self, x: Float[Tensor, "R N features"], mode: Mode = "train"
    ) -> Iterator[Float[Tensor, "R d N"]]:
        """Yield the hidden representations `H_1, ..., H_L`, with samples as columns.

        x: inputs, with samples as rows. mode: the statistics that batch normalization uses, see
        `Mode`.
        """
        H = x.mT
        for layer in range(1, self.depth + 1):
            H = self.layer(layer, H, mode)
            yield H

    def logits(
        self, x: Float[Tensor, "R N features"], mode: Mode = "train"
    ) -> Float[Tensor, "R classes N"]:
        """Return the outputs of the classifier, with samples as columns.

        x: inputs, with samples as rows. mode: the statistics that batch normalization uses, see
        `Mode`.
        """
        H = x.mT
        for layer in range(1, self.depth + 1):
            H = self.layer(layer, H, mode)
        return self._affine(self.depth + 1, H)

    def _affine(self, layer: int, H: Tensor) -> Tensor:
        W, b = self.parameters[f"W{layer}"], self.parameters.get(f"b{layer}")
        return torch.bmm(W, H) if b is None else torch.baddbmm(b[..., None], W, H)

    def _normalize(
        self, layer: int, Z: Float[Tensor, "1 Rd N"], mode: Mode
    ) -> Float[Tensor, "1 Rd N"]:
        """Return the batch normalization of Z, with the features of all networks as channels."""
        scale, shift = (self.parameters[f"{n}{layer}"].view(-1) for n in ("scale", "shift"))
        remembered, training = lookup("mode", mode, MODES)
        variance = self.running[f"variance{layer}"].view(-1) if remembered else None
        if not self.centred:
            return batch_norm_no_mean(Z, scale, shift, variance, training)
        running = None if variance is None else (self.running[f"mean{layer}"].view(-1), variance)
        return batch_norm(Z, scale, shift, running, training)

    def state(self) -> dict[str, Tensor]:
        """Return all parameters and running statistics by name, without copying them."""
        return self.parameters | self.running

    def restore(self, state: dict[str, Tensor]) -> None:
        """Copy the tensors of an earlier `state()` into these networks."""
        for name, tensor in self.state().items():
            tensor.detach().copy_(state[name])

    def traced(self, r: int, x: Float[Tensor, "N features"]) -> dict[str, Tensor]:
        """Return tensors of one network by name: `x`, its parameters, and `H1`, `H2`, ...

        r: the index of the network. x: the inputs. The hidden representations `H1`, ... have
        samples as rows. Batch normalization uses the statistics of the inputs x.
        """
        alone = self.select(torch.tensor([r]))
        state = {name: tensor[0] for name, tensor in alone.state().items()}
        hidden = enumerate(alone.hidden(x[None], "probe"), start=1)
        return {"x": x, **state, **{f"H{layer}": H[0].mT for layer, H in hidden}}

    def map(self, change) -> "MLP":
        """Return a copy of the networks in which `change(tensor)` replaces each tensor."""
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        new.parameters = {name: change(t.detach()).clone() for name, t in self.parameters.items()}
        new.running = {name: change(t).clone() for name, t in self.running.items()}
        return new

    def to(self, device: torch.device) -> "MLP":
        """Return a copy of the networks on a device."""
        return self.map(lambda tensor: tensor.to(device))

    def select(self, networks: Int[Tensor, " R2"]) -> "MLP":
        """Return copies of the networks with these indices, in this order; indices may repeat."""
        return self.map(lambda tensor: tensor[networks])
