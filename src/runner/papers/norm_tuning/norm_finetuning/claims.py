"""An additional claim about training only the normalization layers of a random ResNet."""

from runner.papers.norm_tuning.norm_finetuning.quantities import ahead
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
    ],
}
