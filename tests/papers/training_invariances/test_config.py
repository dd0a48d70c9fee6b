"""Parameters that no study of this paper can run with: each is refused with what would be right."""

from math import inf

import pytest

from runner.core.errors import InputError
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (
            Invariances,
            {"architecture": "mixed", "depth": 5},
            "architecture=mixed has at least 6 layers",
        ),
        (Invariances, {"learning_rates": [0.03]}, "0.03 does not divide time/records"),
        (Invariances, {"learning_rates": [0.01, 0.01]}, "holds 0.01 twice"),
        (Invariances, {"normalized_time": True, "loss": "squared"}, "loss=logistic or exponential"),
        (Invariances, {"classes": [3, 3]}, "holds 3 twice"),
        (
            Invariances,
            {"active": 0.7, "twins": 0.5},
            "active=0.7 and twins=0.5: their sum is above 1",
        ),
        (Invariances, {"time": inf}, "steps from one measurement to the next"),
        (Invariances, {"classes": [1]}, "must be two different digits"),
        (
            Invariances,
            {"architecture": "random_graph", "biases": True},
            "biases=True changes nothing with",
        ),
        (Invariances, {"architecture": "residual_fre"}, "did you mean 'residual_free'"),
        (LowRankTraining, {"classes": 10}, "classes=10 needs loss_function=cross_entropy"),
        (
            LowRankTraining,
            {"loss_function": "cross_entropy"},
            "needs loss_function=logistic or exponential",
        ),
        (LowRankTraining, {"minibatches": 13, "samples": 12}, "minibatches=13 is above samples=12"),
        (LowRankTraining, {"gains": [0.5, 0.5]}, "holds 0.5 twice"),
        (LowRankTraining, {"optimizer": "momentun"}, "did you mean 'momentum'"),
    ],
)
def test_wrong_parameters_name_what_would_be_right(config, changes, message):
    with pytest.raises(InputError, match=message):
        config(**changes)
