"""While the tests run, every function of the package checks its arguments, and shapes as well."""

import pytest
import torch

from runner.networks.spectra import eigvalsh
from runner.results.drawing import drawing_of


def test_a_wrong_type_is_noticed():
    with pytest.raises(TypeError, match="name=4"):
        drawing_of(4, "bn_only")


def test_a_wrong_shape_is_noticed():
    with pytest.raises(TypeError, match="A.*Float"):
        eigvalsh(torch.ones(2, 3))
