"""Spectra of stacks in which some matrix has diverged."""

import pytest
import torch

from runner.networks import spectra


@pytest.mark.parametrize("name", ["svdvals", "svd", "operator_norm", "eigvalsh"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_matrix_that_is_not_finite_has_the_spectrum_nan_and_the_others_keep_theirs(name, bad):
    decompose = getattr(spectra, name)
    good = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    stack = torch.stack([good, good.clone().index_fill_(0, torch.tensor(1), bad)])
    found, alone, single = decompose(stack), decompose(good), decompose(stack[1])
    if name != "svd":
        found, alone, single = (found,), (alone,), (single,)
    for part, expected, nan in zip(found, alone, single, strict=True):
        torch.testing.assert_close(part[0], expected)
        assert part[1].isnan().all()
        assert nan.shape == part[1].shape and nan.isnan().all()
