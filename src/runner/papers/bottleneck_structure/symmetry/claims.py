"""What paper D says of figure 2: what a network that predicts the dynamics has learned."""

from runner.papers.bottleneck_structure.symmetry import quantities as q
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import FITTED
from runner.results.claims import Claim

LEARNED = f"test_cost < {FITTED}"

STRONG = "λ == λ.max()"

COLLAPSED = 0.1
"""Distance within an orbit over between orbits; of orbits that nothing tells apart it is 1."""

FIGURE_2 = [
    Claim(
        "two-outliers",
        "in the bottleneck of the trained network exactly two singular values stand out",
        "paper D, figure 2a",
        q.rank_by_gap().given(LEARNED).within(0.5, of=2),
        note="gap after the second in {right.mean:.0%} of the layers; s₂/s₃ from {gap.min:.2g} on",
    ),
    Claim(
        "true-rank",
        "the trained network recovers the rank 2 of the task",
        "paper D, section 5 and figure 2",
        [
            q.rank("jacobian_rank").given(LEARNED).within(0.5, of=2),
            q.rank("bottleneck_rank").given(LEARNED).within(0.5, of=2),
        ],
        note="Rank J f(x) is this at {rank_share.min:.0%} of the points or more",
    ),
    Claim(
        "summary-statistics",
        "the first two principal components of layer 6 determine (w·v)² and ‖(I − w wᵀ) v‖²",
        "paper D, section 5, figure 2b",
        [
            q.left_unexplained("knn_r2_axis", PCA_LAYER).given(LEARNED).below(0.1),
            q.left_unexplained("knn_r2_orthogonal", PCA_LAYER).given(LEARNED).below(0.1),
        ],
    ),
    Claim(
        "self-consistent",
        "the dynamics on the first two principal components of layer 6 are self-consistent: they"
        " determine the next step",
        "paper D, section 5, figure 2b",
        q.gained("step_r2", PCA_LAYER).given(LEARNED).above(0),
    ),
    Claim(
        "paths-do-not-cross",
        "images of gradient-descent paths do not cross on the first two principal components of"
        " layer 6, but where those of the summary statistics do",
        "paper D, section 5, figure 2b",
        [
            q.crossing_pairs().given(LEARNED).below(1 / 2),
            q.crossing_beyond_task().given(LEARNED).below(0.01),
        ],
        note="of {pairs.max:.0f} pairs {trained.median:.0f} cross, untrained"
        " {untrained.median:.0f}, by the statistics {task.median:.0f} (medians)",
    ),
    Claim(
        "orbits-collapse",
        "points on one orbit of the rotations around w are collapsed together in layer 2",
        "paper D, figure 2c",
        [
            q.within_over_between("orbit_ratio", DISTANCE_LAYER).given(LEARNED).below(COLLAPSED),
            q.within_over_between("plane_ratio", DISTANCE_LAYER).given(LEARNED).below(COLLAPSED),
        ],
        note="untrained {before.median:.2g}",
    ),
]

SYMMETRIES = [
    Claim(
        "rank-without-noise",
        "without noise, E = 0, the trained network recovers the rank 2 of the task",
        "paper D, section 5",
        [
            q.rank("jacobian_rank", "E == 0").given(LEARNED).within(0.5, of=2),
            q.rank("bottleneck_rank", "E == 0").given(LEARNED).within(0.5, of=2),
        ],
    ),
    Claim(
        "spurious-symmetry",
        "a network that underestimates the rank has learned symmetries that the task does not have:"
        " its layer 6 determines (w·v)² and ‖(I − w wᵀ) v‖² no longer",
        "paper D, section 5",
        [
            q.left_unexplained("knn_r2_axis", PCA_LAYER, STRONG).given("rank < 2").above(0.1),
            q.left_unexplained("knn_r2_orthogonal", PCA_LAYER, STRONG).given("rank < 2").above(0.1),
        ],
        note="test cost {test_cost.median:.2g}",
    ),
]

CLAIMS = {"bottleneck-fig2": FIGURE_2, "bottleneck-symmetry": SYMMETRIES}
