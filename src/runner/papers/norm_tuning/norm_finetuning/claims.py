"""Additional claims about training only the normalization layers of a random ResNet."""

from runner.papers.norm_tuning.norm_finetuning.quantities import ahead, ahead_at_square, gained_in
from runner.results.claims import ours

FRANKLE = "Frankle, Schwab, Morcos 2021, Section 4, cited in paper A, Section 1"

CLAIMS = {
    "norm-finetuning": [
        ours(
            "norm-beats-random-weights",
            "training γ and β of a random ResNet reaches a higher test accuracy than training"
            " equally many of its other weights, chosen at random",
            FRANKLE,
            ahead("norm", "random_weights").given("inside_grid").above(0),
        ),
        ours(
            "norm-grows",
            "training γ and β of a random ResNet reaches a higher test accuracy in a wider network"
            " and in a deeper network",
            FRANKLE,
            [gained_in(size).given("inside_grid").above(0) for size in ("d", "L")],
        ),
        ours(
            "square-width",
            "training γ and β of a random ResNet of width d² reaches a higher test accuracy than"
            " training all parameters at width d",
            "supplementary to paper A, Theorem 1, in which equality needs width d²",
            ahead_at_square().given("inside_grid").above(0),
        ),
    ],
}
