"""What is said of a classifier inside a frozen random network, built and trained."""

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import everywhere, less

TOLERANCE = 1e-6
"""Of the logits, which are of order ten."""


def same_function(tables: Tables) -> Found:
    """In evaluation mode, on training and test images."""
    error = of_network(tables, "construction", "max_abs_error")
    agreement = of_network(tables, "construction", "agreement")
    return Found(
        [everywhere((error <= TOLERANCE) & (agreement == 1))], f"largest {error.max():.2g}"
    )


def construction_is_better(tables: Tables) -> Found:
    """The construction has the accuracy of its target; training has that of its own parameters."""
    names = ("bn_only", "construction", "target")
    trained, built, target = (of_network(tables, name, "test_accuracy") for name in names)
    words = (
        f"medians: training {trained.median():.3f}, construction {built.median():.3f}, its target"
        f" {target.median():.3f}"
    )
    return Found([less(trained, built)], words)


CLAIMS = {
    "bn-classifier": [
        Claim(
            "classifier-in-batch-norm",
            "a frozen random network becomes a trained classifier by setting the parameters of its"
            " BatchNorm layers alone",
            "paper A, Theorem 1, Proposition 1, Remark 2",
            same_function,
            f"all logits within {TOLERANCE:g} of the classifier's, the same class for all 1797"
            " images, in every network",
        ),
        Claim(
            "construction-beats-training",
            "at equal parameters the construction classifies unseen digits better than training"
            " the same BatchNorm layers",
            "ours, beside paper A, figure 4: as its networks there, a real classifier",
            construction_is_better,
            "test accuracy of the construction minus that of training above 0",
            kind="ours",
        ),
    ],
}
"""By figure, in the order in which they are told."""
