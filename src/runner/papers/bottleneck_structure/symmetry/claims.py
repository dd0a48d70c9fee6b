"""Statements of paper D about figure 2: the features of a network that predicts the dynamics."""

from runner.papers.bottleneck_structure.symmetry import quantities as q
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import FITTED
from runner.results.claims import Claim

LEARNED = f"test_cost < {FITTED}"

STRONG = "λ == λ.max()"

COLLAPSED = 0.1
"""Largest ratio of distances, within an orbit / between orbits, of collapsed orbits.

The ratio is 1 if the network does not distinguish orbits.
"""

FIGURE_2 = [
    Claim(
        "two-outliers",
        "in the middle layers of the trained network of figure 2, exactly two singular values"
        " stand out",
        "paper D, figure 2a",
        q.rank_by_gap().given(LEARNED).within(0.5, of=2),
        note="the largest gap follows the second singular value in {right.mean:.0%} of these"
        " layers; smallest ratio of the second to the third, s₂/s₃: {gap.min:.2g}",
    ),
    Claim(
        "true-rank",
        "the trained network of figure 2 has the rank 2 of its task",
        "paper D, section 5 and figure 2",
        [
            q.rank("jacobian_rank").given(LEARNED).within(0.5, of=2),
            q.rank("bottleneck_rank").given(LEARNED).within(0.5, of=2),
        ],
        note="the Jacobian has this rank at {rank_share.min:.0%} of the points or more",
    ),
    Claim(
        "summary-statistics",
        "the first two principal components of the trained layer 6 determine (w·v)² and ‖(I −"
        " wwᵀ)v‖² (v: point of a path, w: symmetry axis)",
        "paper D, section 5, figure 2b",
        [
            q.left_unexplained("knn_r2_axis", PCA_LAYER).given(LEARNED).below(0.1),
            q.left_unexplained("knn_r2_orthogonal", PCA_LAYER).given(LEARNED).below(0.1),
        ],
    ),
    Claim(
        "self-consistent",
        "the first two principal components of layer 6 of figure 2's trained network determine"
        " their next values along a path of gradient descent",
        "paper D, section 5, figure 2b",
        q.gained("step_r2", PCA_LAYER).given(LEARNED).above(0),
    ),
    Claim(
        "paths-do-not-cross",
        "paths of gradient descent cross in the first two principal components of layer 6 at most"
        " as often as in the true summary statistics",
        "paper D, section 5, figure 2b",
        [
            q.crossing_pairs().given(LEARNED).below(1 / 2),
            q.crossing_beyond_task().given(LEARNED).below(0.01),
        ],
        note="pairs of paths that cross, of {pairs.max:.0f} (medians): {trained.median:.0f}"
        " after training, {untrained.median:.0f} before, {task.median:.0f} in the true"
        " statistics",
    ),
    Claim(
        "orbits-collapse",
        "layer 2 of the trained network of figure 2 maps points that differ by a rotation around"
        " the symmetry axis w close together",
        "paper D, figure 2c",
        [
            q.within_over_between("orbit_ratio", DISTANCE_LAYER).given(LEARNED).below(COLLAPSED),
            q.within_over_between("plane_ratio", DISTANCE_LAYER).given(LEARNED).below(COLLAPSED),
        ],
        note="ratio before training {before.median:.2g} (median)",
    ),
]

SYMMETRIES = [
    Claim(
        "rank-without-noise",
        "on the task of figure 2 without noise (E = 0), the trained network has the rank 2 of"
        " the task",
        "paper D, section 5",
        [
            q.rank("jacobian_rank", "E == 0").given(LEARNED).within(0.5, of=2),
            q.rank("bottleneck_rank", "E == 0").given(LEARNED).within(0.5, of=2),
        ],
    ),
    Claim(
        "spurious-symmetry",
        "trained networks of rank below 2 have learned symmetries that figure 2's task lacks:"
        " layer 6 no longer determines the task's two summary statistics",
        "paper D, section 5",
        [
            q.left_unexplained("knn_r2_axis", PCA_LAYER, STRONG).given("rank < 2").above(0.1),
            q.left_unexplained("knn_r2_orthogonal", PCA_LAYER, STRONG).given("rank < 2").above(0.1),
        ],
        note="test error {test_cost.median:.2g} (median)",
    ),
]

CLAIMS = {"bottleneck-fig2": FIGURE_2, "bottleneck-symmetry": SYMMETRIES}
