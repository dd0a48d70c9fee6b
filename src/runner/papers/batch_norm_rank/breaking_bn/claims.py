"""Statements of paper B about convolutional networks: figures 5, 7, 10 and 13."""

from dataclasses import replace

from runner.papers.batch_norm_rank.breaking_bn import quantities as q
from runner.papers.batch_norm_rank.learning import LEARNED, LITTLE
from runner.results.claims import Claim

CENTRING = "paper B, Appendix C, figure 7"
ALIGNED = "paper B, Appendix H, figure 10"

BROKEN = 2
"""Smallest ratio of ranks, usual / asymmetric initialization, that counts as broken batch norm."""

PERFECT = 0.99
"""Smallest alignment that counts as perfect: one, to two digits."""

FITS = f"fit_of_batch_norm > {LEARNED}"
"""Condition: in the same replicate, the network with batch norm has learned."""

STARTS = ("batch_norm", "batch_norm_asymmetric")


def asymmetric_start(figure: int, network: str) -> list[Claim]:
    """Return the claims of figure 5 or 13 about the asymmetric initialization.

    figure: its number. network: the network in words, such as "VGG-19".
    """
    source = f"paper B, Section 4, figure {figure}"
    return [
        Claim(
            "asymmetric-start-lowers-rank",
            f"in {network} with batch norm, an asymmetric initialization lowers the rank of the"
            " last hidden layer",
            source,
            q.rank_before(*STARTS).above(BROKEN),
        ),
        Claim(
            "rank-stays-lower",
            f"among the {network} networks of figure {figure}, SGD keeps the order of the initial"
            " ranks at every epoch",
            f"paper B, Section 1.2 (ii), the networks of figure {figure}",
            q.order_kept().above(0),
        ),
        Claim(
            "asymmetric-start-slows-learning",
            f"{network} with batch norm learns more slowly from an asymmetric initialization than"
            " from the usual one",
            source,
            q.accuracy_ahead(*STARTS).above(0),
        ),
        Claim(
            "asymmetric-start-cannot-fit",
            f"from an asymmetric initialization, {network} with batch norm is unable to fit the"
            " training images",
            source,
            q.learned("batch_norm_asymmetric").given(FITS).below(LEARNED),
        ),
        Claim(
            "centring-redundant",
            f"{network} ends at the same training accuracy without mean subtraction in batch norm"
            " as with it",
            f"paper B, Section 2, Appendix C, figure {figure}",
            q.gained_by_centring().given(FITS).within(LITTLE),
        ),
    ]


FIGURE_7 = [
    Claim(
        "centring-redundant",
        "VGG-19 ends at the same training accuracy without mean subtraction in batch norm as"
        " with it",
        CENTRING,
        q.gained_by_centring().given(FITS).within(LITTLE),
    ),
    Claim(
        "centring-changes-no-path",
        "VGG-19 learns equally fast without mean subtraction in batch norm as with it",
        CENTRING,
        q.gained_by_centring("in the mean of all epochs").given(FITS).within(LITTLE),
    ),
]

FIGURE_10 = [
    Claim(
        "gradients-align",
        "from PyTorch's initialization, the gradients of different images are perfectly aligned in"
        " VGG-19 without batch norm",
        f"{ALIGNED} right, Proposition 19",
        q.alignment("vanilla").above(PERFECT),
    ),
    Claim(
        "batch-norm-spreads-gradients",
        "before training, the gradients of different images are less aligned in VGG-19 with"
        " batch norm than without it",
        f"{ALIGNED} right",
        q.alignment_before("vanilla", "batch_norm").above(0),
    ),
    Claim(
        "vanilla-untrainable",
        "from PyTorch's initialization, VGG-19 without batch norm cannot be trained",
        ALIGNED,
        q.learned("vanilla", "at every epoch").given(FITS).below(LITTLE),
    ),
    Claim(
        "larger-rate-does-not-help",
        "from PyTorch's initialization, VGG-19 without batch norm does not learn at 100 times its"
        " best learning rate",
        ALIGNED,
        q.learned("vanilla_100x", "at every epoch").given(FITS).below(LITTLE),
    ),
]


def about(architecture: str, claims: list[Claim]) -> list[Claim]:
    """Return the claims as statements about one architecture, which only its runs decide."""
    return [replace(claim, about={"architecture": architecture}) for claim in claims]


CLAIMS = {
    "rank-fig5": about("vgg19", asymmetric_start(5, "VGG-19")),
    "rank-fig7": about("vgg19", FIGURE_7),
    "rank-fig10": about("vgg19", FIGURE_10),
    "rank-fig13": about("resnet50", asymmetric_start(13, "ResNet-50")),
}
