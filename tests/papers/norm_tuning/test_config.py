"""Parameters that no study of this paper can run with: each is refused with what would be right."""

import pytest

from runner.core.errors import InputError
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.norm_finetuning.config import NormFinetuning


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (Constructions, {"theorem": "wide", "dtype": "mpmath"}, "dtype=mpmath needs theorem=deep"),
        (Constructions, {"theorem": "wide", "sparsity": 0.5}, "sparsity=0.5 needs theorem=sparse"),
        (Constructions, {"theorem": "deep", "width": 9}, "theorem=deep sets its own width"),
        (
            Constructions,
            {"theorem": "low_rank", "rank": 9, "target_width": 4},
            "rank=9 is above target_width=4",
        ),
        (
            Constructions,
            {"theorem": "deep", "block": 9, "target_width": 4},
            "block=9 is above target_width=4",
        ),
        (NormFinetuning, {"arms": ["norm", "low_rank"]}, "arms=low_rank needs start=pretrained"),
        (
            NormFinetuning,
            {"selection_epochs": 3, "epochs": 2},
            "selection_epochs=3 is above epochs=2",
        ),
    ],
)
def test_wrong_parameters_name_what_would_be_right(config, changes, message):
    with pytest.raises(InputError, match=message):
        config(**changes)
