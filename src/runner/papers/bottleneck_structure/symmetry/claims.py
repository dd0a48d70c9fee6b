"""Statements of paper D about figure 2: the features of a network that predicts the dynamics."""

from runner.papers.bottleneck_structure.symmetry import quantities as q
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import FITTED
from runner.results.claims import Claim, Kind
from runner.results.quantities import Rule

LEARNED = f"test_cost < {FITTED}"

STRONG = "λ == λ.max()"

COLLAPSED = 0.1
"""Largest ratio of distances, within an orbit / between orbits, of collapsed orbits.

The ratio is 1 if the network does not distinguish orbits.
"""


def figure_2(recipe: str, end: str, words: str, kind: Kind) -> list[Claim]:
    """Return the claims of figure 2 about the networks of one training procedure.

    recipe: "constant" or "annealed". end: end of the claims' names. words: the training procedure
    in the statements. kind: `paper` for the paper's training procedure, `ours` for our control.
    """

    def known(column: str) -> Rule:
        return q.left_unexplained(column, PCA_LAYER, recipe).given(LEARNED).below(0.1)

    def collapsed(column: str) -> Rule:
        ratio = q.within_over_between(column, DISTANCE_LAYER, recipe)
        return ratio.given(LEARNED).below(COLLAPSED)

    return [
        Claim(
            f"two-outliers{end}",
            f"in the middle layers of figure 2's network, trained with {words}, exactly two"
            " singular values stand out",
            "paper D, figure 2a",
            q.rank_by_gap(recipe).given(LEARNED).within(0.5, of=2),
            kind,
            note="the largest gap follows the second singular value in {right.mean:.0%} of these"
            " layers; the third singular value is above 0.1 in {third.mean:.0%} of them",
        ),
        Claim(
            f"true-rank{end}",
            f"the network of figure 2, trained with {words}, has the rank 2 of its task",
            "paper D, section 5 and figure 2",
            [
                q.rank("jacobian_rank", recipe).given(LEARNED).within(0.5, of=2),
                q.rank("bottleneck_rank", recipe).given(LEARNED).within(0.5, of=2),
            ],
            kind,
            note="the Jacobian has this rank at {rank_share.min:.0%} of the points or more",
        ),
        Claim(
            f"summary-statistics{end}",
            f"with {words}, the first two principal components of layer 6 determine (w·v)² and"
            " ‖(I − wwᵀ)v‖² (v: point of a path, w: symmetry axis)",
            "paper D, section 5, figure 2b",
            [known("knn_r2_axis"), known("knn_r2_orthogonal")],
            kind,
        ),
        Claim(
            f"self-consistent{end}",
            f"with {words}, the first two principal components of layer 6 of figure 2's network"
            " determine their next values along a path of gradient descent",
            "paper D, section 5, figure 2b",
            q.gained("step_r2", PCA_LAYER, recipe).given(LEARNED).above(0),
            kind,
            note="of {pairs.max:,.0f} pairs of paths, {trained.median:.0f} cross after training,"
            " {untrained.median:.0f} before training, and {task.median:.0f} in the true statistics"
            " (medians)",
        ),
        Claim(
            f"orbits-collapse{end}",
            f"with {words}, layer 2 of figure 2's network maps points that differ by a rotation"
            " around the symmetry axis w close together",
            "paper D, figure 2c",
            [collapsed("orbit_ratio"), collapsed("plane_ratio")],
            kind,
            note="before training, the ratio is {before.median:.2g} (median)",
        ),
    ]


SYMMETRIES = [
    Claim(
        "rank-without-noise",
        "on the task of figure 2 without noise (E = 0), the trained network has the rank 2 of"
        " the task",
        "paper D, section 5",
        [
            q.rank("jacobian_rank", "annealed", "E == 0").given(LEARNED).within(0.5, of=2),
            q.rank("bottleneck_rank", "annealed", "E == 0").given(LEARNED).within(0.5, of=2),
        ],
    ),
    Claim(
        "spurious-symmetry",
        "trained networks of rank below 2 have learned symmetries that figure 2's task lacks:"
        " layer 6 no longer determines the task's two summary statistics",
        "paper D, section 5",
        [
            q.left_unexplained("knn_r2_axis", PCA_LAYER, "annealed", STRONG)
            .given("rank < 2")
            .above(0.1),
            q.left_unexplained("knn_r2_orthogonal", PCA_LAYER, "annealed", STRONG)
            .given("rank < 2")
            .above(0.1),
        ],
        note="the median test error is {test_cost.median:.2g}",
    ),
]

CLAIMS = {
    "bottleneck-fig2": [
        *figure_2("constant", "", "weight decay λ throughout", "paper"),
        *figure_2("annealed", "-annealed", "annealed weight decay", "ours"),
    ],
    "bottleneck-symmetry": SYMMETRIES,
}
