"""Study `residual_stream`: how fast the tokens of a random transformer become one.

The residual stream H, one row a token, passes through L blocks

    H <- H + Attention(H),   H <- H + MLP(H)

whose weights are Gaussian and keep the scale of a token. With pre-norm a layer reads LayerNorm(H)
in place of H; with post-norm LayerNorm follows each addition. All replicates advance at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from runner.core.streams import generator
from runner.core.studies import Context
from transformer_studies.residual_stream.config import ResidualStream
from transformer_studies.residual_stream.rows import BlockRank

Layer = Callable[[Float[Tensor, "R n d"]], Float[Tensor, "R n d"]]


def run(config: ResidualStream, context: Context) -> Iterator[BlockRank]:
    """One normalization after another, on the same tokens and the same weights."""
    total = len(config.normalizations) * config.depth
    with context.progress(total, "blocks", unit="blocks") as bar:
        for normalization in config.normalizations:
            H, weights = start(config, context.device)
            for block in range(config.depth + 1):
                if block:
                    for layer in (attention(config, weights), mlp(config, weights)):
                        H = advanced(H, layer, normalization)
                ranks, excesses = (values.tolist() for values in effective_rank(H))
                for replicate in range(config.replicates):
                    yield BlockRank(
                        normalization, replicate, block, ranks[replicate], excesses[replicate]
                    )
                bar.update(block > 0, rank=ranks[0])


def start(config: ResidualStream, device: torch.device) -> tuple[Tensor, "Weights"]:
    """The tokens, (R, n, d), and where the weights come from; in float64.

    The streams are the replicate's own, and the same for every normalization.
    """
    streams = [generator(config.seed, r, "network") for r in range(config.replicates)]
    weights = Weights(streams, device)
    return weights.draw(config.tokens, config.width, gain=sqrt(config.tokens)), weights


@dataclass
class Weights:
    """Draws matrices for all replicates, each from its own stream."""

    streams: list[torch.Generator]
    device: torch.device

    def draw(self, rows: int, columns: int, gain: float = 1.0) -> Float[Tensor, "R rows columns"]:
        """Entries N(0, gain^2 / rows)."""
        drawn = [
            torch.randn(rows, columns, generator=stream, dtype=torch.float64)
            for stream in self.streams
        ]
        return torch.stack(drawn).to(self.device) * (gain / sqrt(rows))


def attention(config: ResidualStream, weights: Weights) -> Layer:
    """Multi-head attention with new weights."""
    d = config.width
    queries, keys, values, outputs = (weights.draw(d, d) for _ in range(4))

    def heads(H: Tensor, W: Tensor) -> Float[Tensor, "R heads n features"]:
        return (H @ W).unflatten(-1, (config.heads, -1)).transpose(1, 2)

    def layer(H: Float[Tensor, "R n d"]) -> Float[Tensor, "R n d"]:
        mixed = scaled_dot_product_attention(heads(H, queries), heads(H, keys), heads(H, values))
        return mixed.transpose(1, 2).flatten(2) @ outputs

    return layer


def mlp(config: ResidualStream, weights: Weights) -> Layer:
    """Two layers with ReLU between them, four times as wide, with new weights (He's gain)."""
    d = config.width
    up, down = weights.draw(d, 4 * d, gain=sqrt(2)), weights.draw(4 * d, d)
    return lambda H: (H @ up).relu() @ down


def advanced(H: Float[Tensor, "R n d"], layer: Layer, normalization: str) -> Float[Tensor, "R n d"]:
    """The residual stream behind one layer."""
    d = H.shape[-1:]
    H = H + layer(layer_norm(H, d) if normalization == "pre" else H)
    return layer_norm(H, d) if normalization == "post" else H


def effective_rank(H: Float[Tensor, "R n d"]) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """r(H) = (sum s_i^2)^2 / sum s_i^4 of the singular values s, and r(H) - 1 without cancellation.

    Paper B's lower bound on the rank, its Eq. (4). With p_i the shares of s_i^2,
    `r - 1 = (1 - sum p_i^2) / sum p_i^2`, and `1 - sum p_i^2 = sum p_i (1 - p_i)`.
    """
    squares = torch.linalg.svdvals(H / H.norm(dim=(1, 2), keepdim=True)).square()
    rest = squares.sum(-1, keepdim=True) - squares
    rest[:, 0] = squares[:, 1:].sum(-1)
    concentration = squares.square().sum(-1)
    return 1 / concentration, (squares * rest).sum(-1) / concentration
