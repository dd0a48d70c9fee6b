"""What is said of a classifier inside a frozen random network. Its logits are of order ten."""

from runner.papers.norm_tuning.bn_classifier.quantities import agreement, logit_error
from runner.results.claims import Claim

CLAIMS = {
    "bn-classifier": [
        Claim(
            "classifier-in-batch-norm",
            "a frozen random network becomes a trained classifier by setting the parameters of its"
            " BatchNorm layers alone",
            "paper A, Theorem 1, Proposition 1, Remark 2",
            [logit_error().always("<=", 1e-6), agreement().always("=", 1)],
        ),
    ],
}
