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
    "train_cost": "training cost",
    "excess": "‖θ‖² − k L",
    "representation_cost": "cost by the formula",
    "off_formula": "relative distance of ‖θ‖² from the formula",
    "middle_lipschitz": "largest Lipschitz constant of a hidden layer",
    "lipschitz": "largest Lipschitz constant",
    "ntk_trace": "Tr Θ",
    "jacobian_rank": "rank of the Jacobian",
    "bottleneck_rank": "smallest rank of any layer",
    "knn_r2_axis": "R² of (w·v)²",
    "knn_r2_orthogonal": "R² of ‖(I − w wᵀ) v‖²",
    "step_r2": "R² of the next step",
    "orbit_ratio": "distances in orbits of the symmetry",
    "plane_ratio": "distances in rings orthogonal to w",
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

CONDITIONS = {
    "test_cost < 0.1": "the test error is below 0.1",
    "recipe == 'minimum'": "the network is a best solution",
    "E == 0": "the data have no noise",
}
"""Conditions in words, as rules print them."""

UNMET = {
    "fit": "a best solution does not fit the data",
    "test_cost < 0.1": "the test error is 0.1 or more",
    "depths >= 3": "the range has fewer than three depths",
    "sizes >= 3": "the networks fit at fewer than three values of N",
    "rank < 2": "the rank is 2 or more",
    "imbalance <= 1e-3": "the weights are not balanced up to 0.001",
}
"""The opposite of each condition in words, for the notes on excluded measurements."""
