"""What paper B says of pre-training and of an asymmetric start, by its authors' protocol."""

from runner.papers.batch_norm_rank.pretraining.quantities import (
    ahead,
    correlation_with_r,
    doublings,
    loss_ratio,
    raised,
    slowed_less,
)
from runner.results.claims import Claim, ours

SECTION = "paper B, Section 4"
CONTROL = f"next to {SECTION}"

AS_LONG = "M >= 1000"
"""Pre-training as long as in the authors' script: a shorter one decides nothing against it."""


def ahead_of_batch_norm(name: str, statement: str, column: str, figure: str) -> Claim:
    """Return a claim that pre-trained networks lead in a column."""
    rule = ahead("pretrained", "batch_norm", column).given(AS_LONG).above(0)
    return Claim(name, statement, f"{SECTION}, {figure}", rule, needs={"depth": 3})


LOSS = [
    Claim(
        "raises-rank",
        "pre-training raises the lower bound r of the rank of the last hidden layer",
        f"{SECTION}, Algorithm 1",
        raised("pretrained", "r of the last layer before training").above(0),
    ),
    ahead_of_batch_norm(
        "faster-than-batch-norm",
        "on deep networks SGD is faster after pre-training than with batch norm",
        "training loss",
        "figures 4 and 12",
    ),
    Claim(
        "slows-down-less",
        "depth slows down pre-trained networks less than those with batch norm",
        f"{SECTION}, figures 4 and 12",
        slowed_less("pretrained", "batch_norm").given(AS_LONG).above(0),
    ),
]

OTHER_MEASURES = [
    ahead_of_batch_norm(
        "better-accuracy",
        "the advantage of deep pre-trained networks over batch norm is also one of training"
        " accuracy",
        "training accuracy",
        "figures 11 and 12",
    ),
    ahead_of_batch_norm(
        "better-test-loss",
        "the advantage of deep pre-trained networks over batch norm is also one of test loss",
        "test loss",
        "figures 11 and 12",
    ),
]

FIGURE_6 = [
    Claim(
        "few-steps-raise-rank",
        "a few steps of pre-training raise r, more steps raise it more",
        f"{SECTION}, figure 6",
        [
            ahead("M = 5", "vanilla", "r before training").above(0),
            ahead("M = 75", "M = 5", "r before training").above(0),
        ],
    ),
    Claim(
        "more-is-better",
        "the more pre-training, the faster deep vanilla networks learn",
        f"{SECTION}, figure 6",
        [
            ahead("M = 5", "vanilla", "training loss").above(0),
            ahead("M = 75", "M = 5", "training loss").above(0),
        ],
    ),
    Claim(
        "rank-stays",
        "SGD keeps the magnitude of the initial rank, whatever the network: within a factor of 2",
        f"{SECTION}, figure 6",
        doublings().within(1),
    ),
    Claim(
        "rank-order-stays",
        "batch norm has a higher rank from the usual than from an asymmetric start, before and"
        " after training",
        f"{SECTION}, figure 6",
        [
            ahead("batch_norm", "batch_norm_asymmetric", "r before training").above(0),
            ahead("batch_norm", "batch_norm_asymmetric", "r after training").above(0),
        ],
    ),
    Claim(
        "asymmetric-start",
        "from an asymmetric start, of low rank, batch norm learns more slowly",
        f"{SECTION}, figure 6",
        [
            ahead("batch_norm", "batch_norm_asymmetric", "r before training").above(0),
            ahead("batch_norm", "batch_norm_asymmetric", "training loss").above(0),
        ],
    ),
    Claim(
        "rank-and-speed",
        "the initial rank strongly influences how fast SGD is: a correlation above 1/2",
        f"{SECTION}, figure 6",
        correlation_with_r().above(0.5),
    ),
]

CONTROLS = [
    ours(
        "rank-beyond-scale",
        "deep networks learn faster after the authors' pre-training (M = 75) than with untouched"
        " weights of the same scale",
        f"{CONTROL}, figure 6",
        ahead("M = 75", "scale_matched", "training loss").above(0),
    ),
    ours(
        "rank-beyond-scale-by-the-text",
        "deep networks learn faster after the text's pre-training (M = 75) than with untouched"
        " weights of the same scale",
        f"{CONTROL}, Algorithm 1",
        ahead("M = 75", "scale_matched", "training loss", "text").above(0),
    ),
]


def helps_against(name: str, others: str, network: str) -> Claim:
    """Return a claim of ours that the deepest pre-trained networks learn faster than others."""
    statement = (
        f"on every dataset the deepest plain networks learn faster after pre-training than {others}"
    )
    rule = loss_ratio(network).given(AS_LONG).above(1)
    return ours(name, statement, f"{CONTROL}, figures 4 and 12", rule, needs={"depth": 3})


BEYOND_SCALE = [
    helps_against("helps-against-batch-norm", "networks with batch norm", "batch_norm"),
    helps_against("helps-against-nothing", "without it", "vanilla"),
    helps_against(
        "helps-beyond-scale",
        "from random weights of which each layer has the size of the pre-trained one",
        "scale_matched",
    ),
]

CLAIMS = {
    "rank-fig4": LOSS,
    "rank-fig6": FIGURE_6,
    "rank-fig11": OTHER_MEASURES,
    "rank-fig12": LOSS + OTHER_MEASURES,
    "rank-pretraining": CONTROLS,
    "rank-scale": BEYOND_SCALE,
}
