"""Paper D, and its names of columns, values and conditions in pictures, tables and rules."""

from runner.core.papers import Paper
from runner.results.looks import DASHED, GREY, INK, Look, Name

PAPER = Paper(
    "D",
    "Bottleneck Structure in Learned Features: Low-Dimension vs Regularity Tradeoff",
    "NeurIPS 2023",
    "2305.19008",
    "tasks",
)

MEASURES = {
    "parameter_norm": "‖θ‖²",
    "train_cost": "training error",
    "test_cost": "test error",
    "gain": Name("gain", rule="gain of the initial weights"),
    "excess": "‖θ‖² − k L",
    ("example20", "excess"): Name("‖θ‖² − k L", rule="‖θ‖² − 3 L (θ: parameters, L: depth)"),
    ("rank_one", "excess"): Name("‖θ‖² − k L", rule="‖θ‖² − L (θ: parameters, L: depth)"),
    "after_first": Name(
        "|‖θ‖² − L Rank A − 2 log |A|₊|",
        rule="the distance of ‖θ‖² from L Rank A + 2 log |A|₊ (|A|₊: product of the nonzero"
        " singular values of A)",
    ),
    "after_second": Name(
        "|‖θ‖² − L Rank A − 2 log |A|₊ − ‖log₊ AᵀA‖² / (2 L)|",
        rule="the distance of ‖θ‖² from L Rank A + 2 log |A|₊ + ‖log₊ AᵀA‖² / (2 L) (|A|₊: product"
        " of the nonzero singular values of A)",
    ),
    "representation_cost": "cost by the formula",
    "off_formula": "relative distance of ‖θ‖² from the formula",
    "middle_lipschitz": Name(
        "largest Lipschitz constant of a hidden layer",
        rule="the largest Lipschitz constant among the hidden layers",
    ),
    "lipschitz": "largest Lipschitz constant",
    "ntk_trace": Name("Tr Θ", rule="the trace of the tangent kernel"),
    "log_ntk": Name(
        "log(largest Tr Θ / L)", rule="log(largest Tr Θ / L) (Θ: tangent kernel, L: depth)"
    ),
    ("stability", "distance"): Name(
        "distance",
        rule="the relative change of the middle layer's kernel matrix from one depth to the next",
    ),
    "jacobian_rank": "rank of the Jacobian",
    "bottleneck_rank": Name("smallest rank of any layer", rule="smallest rank of any layer"),
    "knn_r2_axis": Name("R² of (w·v)²", rule="(w·v)²"),
    "knn_r2_orthogonal": Name("R² of ‖(I − w wᵀ) v‖²", rule="‖(I − w wᵀ) v‖²"),
    "step_r2": "R² of the next step",
    "orbit_ratio": Name("distances in orbits of the symmetry", rule="random orbits"),
    "plane_ratio": Name(
        "distances in rings orthogonal to w", rule="orbits in the plane of figure 2c"
    ),
}
"""Names of the tables' columns in pictures and printed tables."""

NAMES = {
    "recipe": {
        "plain": Name(
            "ordinary training",
            Look(GREY, "o", DASHED, hollow=True, size=9),
            "ordinary\ntraining",
            "networks after ordinary training",
        ),
        "minimum": Name(
            "best solution found",
            Look(INK, "s", hollow=True, size=9),
            "best solution\nfound",
            "best solutions",
        ),
        "annealed": Name(
            "annealed training",
            Look("#7a3c8f", "D", width=1.6, size=6),
            "annealed\ntraining",
            "networks after annealed training",
        ),
        "constant": Name(
            "weight decay λ throughout", rule="networks with weight decay λ throughout"
        ),
    },
    "task": {
        "figure-1": Name("the task of figure 1", rule="networks trained on figure 1's task"),
        "scratch": Name(
            "training from scratch",
            rule="networks trained from random weights on figure 1's task",
        ),
        "example-20": Name("Example 20", rule="Example 20's networks"),
    },
    "theorem": {
        "schatten": Name("Schatten norm", rule="the inequality of Appendix A.1"),
        "theorem-3": "Theorem 3",
        "theorem-6": "Theorem 6",
        "theorem-7": "Theorem 7",
        "corollary-8": "Corollary 8",
        "proposition-9": Name("Proposition 9", rule="Proposition 9 with the factor of its proof"),
        "proposition-9-printed": "Proposition 9 as printed",
        "proposition-9-segment": Name(
            "Proposition 9 on segments", rule="the second part of Proposition 9"
        ),
        "linear": Name("linear", rule="‖θ‖² ≥ L ‖A‖^(2/L)"),
    },
}
"""Names and looks of values, by column."""

SYMBOLS = {"L": "depth", "c": "learning-rate factor", "λ": "weight decay"}
"""What the symbols of rules are."""

CONDITIONS = {
    "i <= k": "only the k largest are counted (k: rank)",
    "fit": "all best solutions of the task fit the data",
    "depths >= 3": "the task has a range of three or more depths of equal rank",
    "L == L.max()": "the depth L is the largest",
    "L == L.min()": "the depth L is the smallest",
    "L >= 12 and c <= 0.2": "the depth is 12 or more and c is at most 0.2",
    "λ == λ.max()": "the weight decay λ is the largest",
    "λ == λ.min()": "the weight decay λ is the smallest",
    "rank < 2": "the network has a rank below 2",
    "sizes >= 3": "networks of the task fit at three or more values of N",
    "c > 0 and c <= 0.2 and train_cost < 0.1": "c is at most 0.2 and the network fits",
    "c == 0.1 and L < 30": "c = 0.1 and the depth is below 30",
    "c == 0.1 and L < 30 and fits": "c = 0.1, the depth is below 30 and the network fits",
    "c == 0.1 and L < 30 and fits and before > 2": "c = 0.1, the depth is below 30, the product was"
    " above 2 before gradient descent, and the network fits after it",
    "fits and before > 2": "the product was above 2 before gradient descent, and the network fits",
    "c == 0.2 and fits": "c = 0.2 and the network fits",
    "c == 0.2": "c = 0.2",
    "fits": "the networks fit at all depths",
    "c == 0": "gradient descent has taken no step",
    "points > 0": "the inequality applies to at least one point",
    "imbalance <= 1e-3": "its imbalance is at most 0.001",
    "test_cost < 0.1": "the test error is below 0.1",
    "recipe == 'minimum'": "the network is a best solution",
    "E == 0": "the data have no noise",
}
"""Conditions in words, as rules print them."""

UNMET = {
    "fit": "a best solution does not fit the data",
    "fits": "a network does not fit after gradient descent",
    "fits and before > 2": "a network does not fit, or began at the edge of stability or below it",
    "test_cost < 0.1": "the test error is 0.1 or more",
    "depths >= 3": "the range has fewer than three depths",
    "sizes >= 3": "the networks fit at fewer than three values of N",
    "rank < 2": "the rank is 2 or more",
    "imbalance <= 1e-3": "the weights are not balanced up to 0.001",
}
"""The opposite of each condition in words, for the notes on excluded measurements."""
