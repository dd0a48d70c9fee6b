"""What we say of the residual stream."""

from runner.results.claims import ours
from transformer_studies.residual_stream.quantities import excess, gain

COLLAPSED = 0.05
"""r(H) - 1 below which a stream has one direction."""

SOURCE = "after paper B, Section 3"

CLAIMS = {
    "residual-stream": [
        ours(
            "collapse",
            "without normalization the tokens of a deep random transformer become one direction",
            SOURCE,
            excess("none").below(COLLAPSED),
        ),
        ours(
            "post-norm-collapses",
            "post-norm does not help: the tokens become one direction as well",
            SOURCE,
            excess("post").below(COLLAPSED),
        ),
        ours(
            "pre-norm-keeps",
            "pre-norm keeps more than one direction, and more than no normalization does",
            SOURCE,
            [excess("pre").above(COLLAPSED), gain("pre").above(0)],
        ),
    ],
}
