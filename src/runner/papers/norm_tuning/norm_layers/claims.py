"""What paper A's Proposition 1 says of real normalization layers, and where it ends."""

from runner.papers.norm_tuning.norm_layers import quantities as q
from runner.results.claims import Claim, ours

BIASED = ("layer_norm with biases", "rms_norm with biases")

CLAIMS = {
    "norm-layers": [
        Claim(
            "batch-norm-exact",
            "in BatchNorm layers in evaluation mode the construction equals the target",
            "paper A, Proposition 1 and Theorem 1",
            q.error_over_rounding().always("<=", 1),
            note="relative error at most {relative_error.max:.2g}",
        ),
        Claim(
            "batch-norm-with-biases-exact",
            "with the frozen biases of Eq. (3) the construction equals the target in BatchNorm"
            " layers in evaluation mode",
            "paper A, Eq. (3), Proposition 1 and Theorem 1",
            q.error_over_rounding("batch_norm with biases").always("<=", 1),
            note="relative error at most {relative_error.max:.2g}",
        ),
        ours(
            "layer-norm-cannot",
            "without biases no scales and shifts in LayerNorm layers equal the target: the first"
            " layer maps x and c x to the same",
            "the abstract of paper A names LayerNorm, its Proposition 1 is of BatchNorm",
            [q.least_in_layer_norm().above(0.01), q.above_least_in_layer_norm().above(0)],
        ),
        ours(
            "biases-undercut",
            "with the frozen biases of Eq. (3) the first LayerNorm or RMSNorm shows the norm of x,"
            " and fitted scales and shifts end below the least error without biases",
            "next to the abstract of paper A, which names LayerNorm",
            [q.explained_norm(BIASED).above(0.5), q.fitted_over_least(BIASED).below(1)],
        ),
    ],
}
