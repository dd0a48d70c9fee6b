"""Statements of paper B about depth, rank and training: figures 1 and 2."""

from runner.papers.batch_norm_rank.learning import DEEP, LEARNED, LITTLE
from runner.papers.batch_norm_rank.rank_collapse import quantities as q
from runner.results.claims import Claim, ours

LEFT, RIGHT = (f"paper B, Section 1.1, figure 1 {side}" for side in ("left", "right"))
FIGURE_2 = "paper B, Section 1.1, figure 2"

SHALLOWEST, DEEPEST = "depth == depth.min()", "depth == depth.max()"
BEYOND = f"depth > {DEEP}"

ONE = 1.5
"""Largest mean rank that counts as rank one."""

FIGURE_1 = [
    Claim(
        "vanilla-rank-collapses",
        "before training, rank and r of the last hidden layer of plain networks collapse with"
        " depth",
        LEFT,
        [
            q.rank("vanilla", SHALLOWEST).above(2),
            q.rank("vanilla", DEEPEST).below(ONE),
            q.r("vanilla", BEYOND).below(ONE),
        ],
    ),
    Claim(
        "batch-norm-keeps-rank",
        "before training, the last hidden layer of networks with batch norm has a high rank at"
        " every depth",
        LEFT,
        q.rank_over_root("batch norm").above(1),
    ),
    Claim(
        "vanilla-cannot-learn",
        "from PyTorch's initialization, plain networks of more than ten layers are essentially"
        " unable to learn",
        RIGHT,
        [
            q.learned("vanilla", SHALLOWEST).above(LEARNED),
            q.learned("vanilla", BEYOND).below(LITTLE),
        ],
    ),
    Claim(
        "batch-norm-loses-little",
        "the training accuracy of networks with batch norm drops only mildly with depth",
        RIGHT,
        q.accuracy_lost("batch norm", 0.1, of="vanilla").below(0),
    ),
]


def by_layer(activation: str, name: str) -> list[Claim]:
    """Return the claims of figure 2 about networks of one activation.

    activation: the activation in the tables, such as "relu". name: its printed name, such as
    "ReLU".
    """
    return [
        Claim(
            f"{activation}-vanilla-rank-one",
            f"the rank of the hidden layers of plain {name} networks falls to one with depth",
            FIGURE_2,
            q.rank_of_deepest(activation).below(ONE),
        ),
        Claim(
            f"{activation}-batch-norm-above-root",
            f"batch norm keeps the rank of all hidden layers of {name} networks above √d (d:"
            " width)",
            FIGURE_2,
            q.rank_of_layers(activation).above(1),
        ),
    ]


OTHER_NORMS = "supplementary to paper B, Section 1.1"

SIXTEEN = "depth == 16"
"""Depth above which the paper finds plain networks unable to learn."""

NORMS = [
    ours(
        "only-batch-norm-keeps-rank",
        "with layer norm or RMS norm before the activation, r of linear and ReLU networks falls to"
        " one with depth as in plain networks, while batch norm keeps the rank above √d (d: width)",
        OTHER_NORMS,
        [
            q.r_of_deepest().below(ONE),
            *(q.rank_of_layers(activation).above(1) for activation in ("linear", "relu")),
        ],
        needs={"normalization": 5},
    ),
    ours(
        "learns-from-rank-one",
        "networks of 16 layers with layer norm or RMS norm begin with r near one and learn; plain"
        " networks of this depth, from PyTorch's initialization, do not learn",
        OTHER_NORMS,
        [
            *(q.r(name, SIXTEEN).below(ONE) for name in ("layer norm", "RMS norm")),
            *(q.learned(name, SIXTEEN).above(LEARNED) for name in ("layer norm", "RMS norm")),
            q.learned("vanilla", SIXTEEN).below(LITTLE),
        ],
        note="the rule also asks that the learned fraction with layer norm and with RMS norm be"
        " above 0.5",
    ),
]

WITHOUT_NUMBER = "paper B, Section 4, figure without a number"

STARTS = [
    Claim(
        "asymmetric-start-lowers-rank",
        "in an MLP with batch norm, weights on [0, 2/√d] instead of [−1/√d, 1/√d] lower the rank of"
        " the last hidden layer",
        WITHOUT_NUMBER,
        q.rank_lowered("pytorch", "asymmetric").above(2),
    ),
    Claim(
        "asymmetric-start-slows-learning",
        "an MLP with batch norm learns more slowly from weights on [0, 2/√d] than from weights on"
        " [−1/√d, 1/√d]",
        WITHOUT_NUMBER,
        q.accuracy_ahead("pytorch", "asymmetric").above(0),
    ),
]

CLAIMS = {
    "rank-starts": STARTS,
    "rank-norms": NORMS,
    "rank-fig1": FIGURE_1,
    "rank-fig2": [*by_layer("linear", "linear"), *by_layer("relu", "ReLU")],
}
