"""The statements of figure `what-others-saw`, on what paper C's introduction explains."""

from runner.papers.training_invariances.small_copies import quantities as q
from runner.results.claims import ours

CLAIMS = {
    "what-others-saw": [
        ours(
            "untrained-rank-falls",
            "before training, the effective rank of the last hidden layer falls with the depth",
            "supplementary to paper C, introduction, on Huh et al. 2021",
            q.kept_by_depth().below(1),
        ),
        ours(
            "training-raises-rank",
            "at every depth, training raises the effective rank of the last hidden layer",
            "supplementary to paper C, introduction, on Huh et al. 2021",
            q.raised_by_training().above(1),
        ),
    ]
}
