"""Statements of paper B about pre-training and asymmetric initialization.

The paper's sentences about the rank are judged by the rank. Its experiments show r, the lower bound
(4) of the rank, which may change the other way, so each such sentence has a second claim about r.

Most rules use runs by the protocol of the authors' code. The correlations with speed use all
protocols.
"""

from runner.papers.batch_norm_rank.pretraining.quantities import (
    ahead,
    correlation_with_r,
    correlation_with_rank,
    doublings,
    doublings_of_rank,
    order_kept,
    raised,
    slowed_less,
)
from runner.papers.batch_norm_rank.pretraining.tables import ENOUGH, LONG
from runner.results.claims import Claim

SECTION = "paper B, Section 4"

RANK = "rank of the last layer before training"

RECOVERS = "paper B, Section 1.2 (ii)(b)"
ORDER = "paper B, Section 1.2 (ii)"

PRETRAINED = f"M >= {ENOUGH}"
"""Condition: pre-training is as long as in the authors' script. Shorter runs are not judged."""

AS_LONG = f"{PRETRAINED} and epochs >= {LONG}"
"""Condition: training, too, has at least half of the 100 epochs of the authors' script.

We added it when we knew the numbers on digits, which train for 25 epochs.
"""


def advantage(name: str, statement: str, column: str, source: str, than: str) -> Claim:
    """Return the claim that the deepest pre-trained networks are better than others in a measure.

    name, statement, source: parts of the claim. column: the measure, a key of `quantities.COLUMNS`.
    than: the method of the other networks.
    """
    rule = ahead("pretrained", than, column).given(AS_LONG).above(0)
    return Claim(name, statement, source, rule, needs={"depth": 3})


LOSS = [
    Claim(
        "raises-rank",
        "pre-training increases the rank of the last hidden layer of plain networks",
        f"{RECOVERS}, the networks of figures 4 and 12",
        raised("pretrained", RANK).above(0),
    ),
    Claim(
        "raises-r",
        "pre-training raises r, a lower bound of the rank, in the last hidden layer of plain"
        " networks",
        f"{SECTION}, Algorithm 1",
        raised("pretrained", "r of the last layer before training").above(0),
    ),
    advantage(
        "faster-than-vanilla",
        "the deepest plain networks have a lower mean training loss with pre-training than"
        " without it, so they learn faster",
        "training loss",
        f"{RECOVERS}, figures 4 and 12",
        "vanilla",
    ),
    advantage(
        "faster-than-batch-norm",
        "the deepest pre-trained plain networks have a lower mean training loss than networks"
        " with batch norm, so they learn faster",
        "training loss",
        f"{SECTION}, figures 4 and 12",
        "batch_norm",
    ),
    Claim(
        "slows-down-less",
        "depth slows down pre-trained plain networks less than networks with batch norm: their"
        " mean training loss rises less with depth",
        f"{SECTION}, figures 4 and 12",
        slowed_less("pretrained", "batch_norm").given(AS_LONG).above(0),
    ),
    Claim(
        "rank-order-stays",
        "of two networks of one depth (plain, pre-trained or with batch norm), the network with the"
        " larger rank before training has the larger rank at every epoch of SGD",
        f"{ORDER}, the networks of figures 4 and 12",
        order_kept("rank of the last layer").above(0),
    ),
    Claim(
        "r-order-stays",
        "of two networks of one depth (plain, pre-trained or with batch norm), the network with the"
        " larger r before training has the larger r at every epoch of SGD (r: lower bound of the"
        " rank)",
        f"{ORDER}, by r in the networks of figures 4 and 12",
        order_kept("r of the last layer").above(0),
    ),
]

OTHER_MEASURES = [
    advantage(
        "better-accuracy-than-vanilla",
        "the deepest plain networks have a higher training accuracy with pre-training than without"
        " it",
        "training accuracy",
        f"{RECOVERS}, figures 11 and 12",
        "vanilla",
    ),
    advantage(
        "better-accuracy",
        "the deepest pre-trained plain networks have a higher training accuracy than networks with"
        " batch norm",
        "training accuracy",
        f"{SECTION}, figures 11 and 12",
        "batch_norm",
    ),
    advantage(
        "better-test-loss",
        "the deepest pre-trained plain networks have a lower test loss than networks with batch"
        " norm",
        "test loss",
        f"{SECTION}, figures 11 and 12",
        "batch_norm",
    ),
]

FIGURE_6 = [
    Claim(
        "few-steps-raise-rank",
        "a few steps of pre-training increase the rank of the last hidden layer of plain networks,"
        " and more steps increase it more",
        f"{SECTION}, figure 6",
        [
            ahead("M = 5", "vanilla", RANK).above(0),
            ahead("M = 75", "M = 5", RANK).above(0),
        ],
    ),
    Claim(
        "few-steps-raise-r",
        "a few steps of pre-training raise the mean r of plain networks (a lower bound of the"
        " rank), and more steps raise it more",
        f"{SECTION}, figure 6",
        [
            ahead("M = 5", "vanilla", "r before training").above(0),
            ahead("M = 75", "M = 5", "r before training").above(0),
        ],
    ),
    Claim(
        "more-is-better",
        "the more pre-training, the faster deep plain networks learn",
        f"{SECTION}, figure 6",
        [
            ahead("M = 5", "vanilla", "training loss").above(0),
            ahead("M = 75", "M = 5", "training loss").above(0),
        ],
    ),
    Claim(
        "rank-stays",
        "in figure 6, SGD changes the rank of every network's last hidden layer by less than a"
        " factor of two at every epoch",
        f"{SECTION}, figure 6",
        doublings_of_rank().within(1),
    ),
    Claim(
        "r-stays",
        "in figure 6, SGD changes every network's mean r (lower bound of the rank) by less than a"
        " factor of two at every epoch",
        f"{SECTION}, by r in figure 6",
        doublings().within(1),
    ),
    Claim(
        "rank-order-stays",
        "among all networks of figure 6, SGD keeps the order of the initial ranks at every epoch",
        f"{ORDER}, the networks of figure 6",
        order_kept("rank of the last layer").above(0),
    ),
    Claim(
        "r-order-stays",
        "among all networks of figure 6, SGD keeps the order of the initial mean r (a lower"
        " bound of the rank) at every epoch",
        f"{ORDER}, by r in the networks of figure 6",
        order_kept("mean r").above(0),
    ),
    Claim(
        "asymmetric-start",
        "with batch norm, an asymmetric initialization gives a lower rank and slower learning than"
        " the usual one",
        f"{SECTION}, figure 6",
        [
            ahead("batch_norm", "batch_norm_asymmetric", RANK).above(0),
            ahead("batch_norm", "batch_norm_asymmetric", "training loss").above(0),
        ],
    ),
    Claim(
        "asymmetric-start-lowers-r",
        "with batch norm, an asymmetric initialization gives a lower mean r (a lower bound of the"
        " rank) than the usual one",
        f"{SECTION}, by r in figure 6",
        ahead("batch_norm", "batch_norm_asymmetric", "r before training").above(0),
    ),
]

ALL_INITIALIZATIONS = [
    Claim(
        "rank-and-speed",
        "the initial rank strongly influences the speed of SGD: over 13 initializations, the rank"
        " of the last hidden layer and speed have a correlation above 1/2",
        f"{SECTION}, on the networks of our control",
        correlation_with_rank().above(0.5),
        note="over the five networks of figure 6 alone the correlation is {of_figure_6.median:.2f};"
        " diverged networks count as the slowest",
    ),
    Claim(
        "r-and-speed",
        "the initial r strongly influences the speed of SGD: over 13 initializations, mean r"
        " and speed have a correlation above 1/2",
        f"{SECTION}, by r on the networks of our control",
        correlation_with_r().above(0.5),
        note="over the five networks of figure 6 alone the correlation is {of_figure_6.median:.2f};"
        " diverged networks count as the slowest",
    ),
]

CLAIMS = {
    "rank-fig4": LOSS,
    "rank-fig6": FIGURE_6,
    "rank-fig11": OTHER_MEASURES,
    "rank-fig12": LOSS + OTHER_MEASURES,
    "rank-pretraining": ALL_INITIALIZATIONS,
}
