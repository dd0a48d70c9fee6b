"""Measure how parallel the gradients of single images are (paper B, Appendix H)."""

import torch
from jaxtyping import Float
from torch import Tensor


@torch.no_grad()
def gradient_alignment(H: Float[Tensor, "N d"], errors: Float[Tensor, "N k"]) -> Float[Tensor, ""]:
    """Return the mean absolute cosine of two samples' gradients by the last layer (Proposition 19).

    The gradient of sample i for neuron k of the classifier is `errors[i, k] H[i]` (Eq. 97).
    Therefore no backward pass is needed. The mean is over all neurons and all pairs of samples, in
    float64. Zero gradients have no direction and are excluded. The result is 1 if all
    representations are collinear. It is nan if an entry is not finite or if no pair remains.

    H: last hidden representations, samples as rows. errors: derivatives of each sample's loss by
    its logits, for the cross entropy softmax minus one-hot.
    """
    H, errors = H.double(), errors.double()
    length = H.norm(dim=1, keepdim=True)
    direction = H / length.where(length > 0, 1.0)
    cosine = (direction @ direction.mT).abs()
    nonzero = ((errors != 0) & (length > 0)).double()
    neurons = nonzero @ nonzero.mT  # both gradients of a pair are nonzero
    neurons.fill_diagonal_(0)
    alignment = (neurons * cosine).sum() / neurons.sum()
    return alignment.where(errors.isfinite().all(), torch.nan)
