"""Convert one of many networks into a torch module with samples as rows, for further use."""

from math import inf

from jaxtyping import Float
from torch import Tensor, nn

from runner.networks.activations import activation_of
from runner.networks.convolutional import normalization as norm_of
from runner.networks.mlp import skipped


class Hidden(nn.Module):
    """The layer `sigma(BN(H + gamma (W H + b)))` as a torch module, with samples as rows.

    linear: W and b. norm: the normalization BN. activation: the name of sigma. skip: gamma; inf:
    the layer is `sigma(BN(W H + b))`.
    """

    def __init__(self, linear: nn.Linear, norm: nn.Module, activation: str, skip: float) -> None:
        super().__init__()
        self.linear, self.norm, self.skip = linear, norm, skip
        self.sigma = activation_of(activation).function

    def forward(self, H: Float[Tensor, "N _"]) -> Float[Tensor, "N d"]:
        """Return the layer's output. H: the hidden representations before the layer."""
        Z = skipped(H, self.linear(H), self.skip, not isinstance(self.norm, nn.Identity))
        return self.sigma(self.norm(Z))


def mlp(
    tensors: dict[str, Tensor],
    activation: str = "relu",
    normalization: str = "none",
    skip: float = inf,
) -> nn.Sequential:
    """Return the fully connected network with these tensors, as a torch module.

    tensors: weights, biases and statistics of one network, with the names of `networks.mlp.MLP`. A
    layer without a tensor `scale` is not normalized. skip: gamma of the skip connections; inf:
    none.

    The network is in evaluation mode. After its method `train()`, batch normalization uses the
    statistics of the batch. Raises InputError for an unknown activation or normalization.
    """
    depth = sum(name.startswith("W") for name in tensors) - 1
    layers: list[nn.Module] = []
    for layer in range(1, depth + 2):
        W, b = tensors[f"W{layer}"], tensors.get(f"b{layer}")
        linear = nn.Linear(W.shape[1], len(W), bias=b is not None, dtype=W.dtype)
        linear.load_state_dict({"weight": W} | ({} if b is None else {"bias": b}))
        if layer > depth:
            layers.append(linear)
            break
        is_normalized = f"scale{layer}" in tensors
        norm = norm_of(normalization if is_normalized else "none", len(W)).to(W.dtype)
        norm.load_state_dict({name: tensors[f"{name}{layer}"] for name in norm.state_dict()})
        layers.append(Hidden(linear, norm, activation, skip))
    return nn.Sequential(*layers).eval()
