"""Parameters that no study of this paper can run with: each is refused with what would be right."""

import pytest

from runner.core.errors import InputError
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.bottleneck_structure.symmetry.config import Symmetry


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (
            Bottleneck,
            {"recipe": "minimum", "depths": [4, 6], "start_depths": [5]},
            "are not among the depths",
        ),
        (
            Bottleneck,
            {"recipe": "plain", "depths": [4, 6], "start_depths": [4]},
            "is for recipe=minimum",
        ),
        (Symmetry, {"starts": 1}, "starts=1 must be at least 2"),
        (Example20, {"depths": [4, 7]}, "even"),
    ],
)
def test_wrong_parameters_name_what_would_be_right(config, changes, message):
    with pytest.raises(InputError, match=message):
        config(**changes)
