"""Statements of paper A's Proposition 1 about real normalization layers, and additional ones."""

from runner.papers.norm_tuning.norm_layers import quantities as q
from runner.results.claims import Claim, ours

BIASED = ("layer_norm with biases", "rms_norm with biases")

CLAIMS = {
    "norm-layers": [
        Claim(
            "batch-norm-exact",
            "in BatchNorm layers with fixed statistics (evaluation mode), the network"
            " constructed by Theorem 1 equals its target",
            "paper A, Proposition 1 and Theorem 1",
            q.error_over_rounding().always("<=", 1),
            note="rounding: the largest relative error is {relative_error.max:.2g}",
        ),
        Claim(
            "batch-norm-with-biases-exact",
            "in BatchNorm layers with fixed statistics and the frozen biases of Eq. (3), the"
            " network constructed by Theorem 1 equals its target",
            "paper A, Eq. (3), Proposition 1 and Theorem 1",
            q.error_over_rounding("batch_norm with biases").always("<=", 1),
            note="rounding: the largest relative error is {relative_error.max:.2g}",
        ),
        ours(
            "layer-norm-cannot",
            "no γ and β make a LayerNorm network without biases equal its target: its first layer"
            " removes the norm of the input",
            "supplementary to paper A: its abstract names LayerNorm, its Proposition 1 is about"
            " BatchNorm",
            [q.least_in_layer_norm().above(0.01), q.above_least_in_layer_norm().above(0)],
        ),
        ours(
            "biases-undercut",
            "with frozen biases, the first LayerNorm or RMSNorm reveals the input's norm, and"
            " fitted γ and β have a smaller error than any γ and β could have without biases",
            "supplementary to the abstract of paper A, which names LayerNorm",
            [q.explained_norm(BIASED).above(0.5), q.fitted_over_least(BIASED).below(1)],
            note="the frozen biases are drawn as in Eq. (3)",
        ),
    ],
}
