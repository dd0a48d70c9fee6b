"""Additional claims about rank, directions and size of the last hidden layer before training."""

from runner.papers.batch_norm_rank.rank_or_size.quantities import (
    ahead,
    full_minus,
    ordered_better,
)
from runner.results.claims import ours

SOURCE = "supplementary to paper B, Section 4"

LARGE = 0.3
"""Difference of accuracies that counts as learning against not learning."""

MARGIN = 0.2
"""Difference of accuracies below which two initializations learn equally well."""

CLAIMS = {
    "rank-or-size": [
        ours(
            "size-acts-as-step",
            "networks of equal rank and r learn at size 1, and do not learn from unscaled weights"
            " at any learning rate, but do learn from them with a learning rate for each layer",
            f"{SOURCE}, size at equal rank",
            [
                ahead("signed", "unscaled").above(LARGE),
                ahead("unscaled_layer_rates", "unscaled").above(LARGE),
            ],
        ),
        ours(
            "rank-4-is-enough",
            "at equal construction and size 1, networks of rank 4 learn as well as networks of full"
            " rank",
            f"{SOURCE}, rank at equal size",
            full_minus(4).within(MARGIN),
        ),
        ours(
            "directions-order-learning",
            "over all networks of size 1, the directions in which images differ (r of the"
            " deviations from the mean) order the training accuracies better than the rank does",
            f"{SOURCE}, rank and directions at equal size",
            ordered_better().above(0),
            note="Spearman's correlation with the accuracy is {of_deviations.median:.2f} for r of"
            " the deviations, {of_rank.median:.2f} for the rank, {of_r.median:.2f} for r and"
            " {of_spread.median:.2f} for the spread",
        ),
    ],
}
