"""The accuracy of a network that has diverged."""

from math import nan

import torch
from jaxtyping import Float
from torch import Tensor


def accuracy(right: Float[Tensor, "*R"], loss: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """Return the fraction of correct predictions, or nan where the loss is nan.

    From logits that are nan, the class that comes first would count as the prediction. right: the
    fraction, of each of R networks. loss: the loss on the same images.
    """
    return torch.where(loss.isnan(), nan, right)
