"""Measure how far the gradients of single images are parallel (paper B, Appendix H)."""

import torch
from jaxtyping import Float
from torch import Tensor


@torch.no_grad()
def gradient_alignment(H: Float[Tensor, "N d"], errors: Float[Tensor, "N k"]) -> Float[Tensor, ""]:
    """Return the mean absolute cosine of the gradients of two images, last layer (Proposition 19).

    The gradient of sample i for neuron k of the classifier is `errors[i, k] H[i]` (Eq. 97), so no
    backward pass is needed. Averaged over neurons and pairs of samples; a gradient that is zero has
    no direction and is left out. One if all representations are collinear; nan if one is not
    finite, or no pair is left.

    H: last hidden representations, samples as rows; errors: derivatives of each sample's loss by
    its logits (softmax minus one-hot, for the cross entropy). In float64.
    """
    H, errors = H.double(), errors.double()
    length = H.norm(dim=1, keepdim=True)
    direction = H / length.where(length > 0, 1.0)
    cosine = (direction @ direction.mT).abs()
    nonzero = ((errors != 0) & (length > 0)).double()
    neurons = nonzero @ nonzero.mT  # for which both gradients of a pair have a direction
    neurons.fill_diagonal_(0)
    alignment = (neurons * cosine).sum() / neurons.sum()
    return alignment.where(errors.isfinite().all(), torch.nan)
