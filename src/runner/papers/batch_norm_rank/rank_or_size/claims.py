"""Additional claims about rank, directions and size of the last hidden layer before training."""

from runner.papers.batch_norm_rank.rank_or_size.quantities import (
    ahead,
    full_minus,
    ordered_better,
)
from runner.papers.batch_norm_rank.rank_or_size.tables import MARGIN
from runner.results.claims import ours

SOURCE = "supplementary to paper B, Section 4"

CLAIMS = {
    "rank-or-size": [
        ours(
            "size-decides",
            "at equal rank and r, networks of size 1 learn better than networks of the size of"
            " unscaled weights: unscaled at any learning rate, unscaled with a learning rate for"
            " each layer, and with equal sizes in all layers",
            f"{SOURCE}, size at equal rank",
            [
                ahead("signed", family).above(MARGIN)
                for family in ("unscaled", "unscaled_layer_rates", "even")
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
            "over all networks of size 1 with zero biases, the directions in which images differ"
            " (r of the deviations from the mean) order the training accuracies better than the"
            " rank does",
            f"{SOURCE}, rank and directions at equal size",
            ordered_better().above(0),
            note="Spearman's correlation with the accuracy is {of_deviations.median:.2f} for r of"
            " the deviations, {of_rank.median:.2f} for the rank, {of_r.median:.2f} for r and"
            " {of_spread.median:.2f} for the spread",
        ),
    ],
}
