"""Claims about VGG-19 without batch norm from initializations of several sizes."""

from runner.papers.batch_norm_rank.learning import LEARNED, LITTLE
from runner.papers.batch_norm_rank.vgg_size import quantities as q
from runner.results.claims import Claim, ours

ALIGNED = "alignment > 0.9"
"""Condition: the gradients of two images are nearly parallel. With batch norm the alignment is
below 0.8."""

VANISHED = 0.1
"""Gradient norm, first / last convolution, below which the norm has vanished."""

MARGIN = 0.15
"""Difference of learned fractions above which one initialization is better than another."""

CLAIMS = {
    "rank-vgg": [
        Claim(
            "aligned-gradients-untrainable",
            "VGG-19 without batch norm cannot be trained if its gradients are aligned",
            "paper B, Appendix H",
            q.learned().given(ALIGNED).below(LITTLE),
        ),
        Claim(
            "norm-does-not-vanish",
            "from PyTorch's initialization, VGG-19 without batch norm loses the direction of its"
            " gradients and not their norm: the norm does not vanish towards the first layer",
            "paper B, Section 3.2 and Appendix H",
            q.first_over_last("vanilla").above(VANISHED),
        ),
        ours(
            "size-lets-vgg-learn",
            "VGG-19 without batch norm learns if every layer begins at size 1, and better than with"
            " He's weights, which have the same rank and r",
            "supplementary to paper B, Appendix H",
            [
                q.learned_by("unit_scale").above(LEARNED),
                q.ahead("unit_scale", "he").above(MARGIN),
            ],
        ),
    ],
}
