"""What paper D says of figure 2, judged on the trained and, for comparison, the untrained
network.
"""

from functools import partial

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import middle_layers
from runner.papers.bottleneck_structure.theorem_claims import theorem_claims
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import below, everywhere, less

SOURCE = "paper D, section 5 and figure 2"


def learned(tables: Tables) -> Found:
    """The trained network predicts the costs of fresh starts better than the zero network does."""
    trained = tables["networks"].query("stage == 'trained'")
    return Found([below(trained["test_cost"], 0.1, point="test cost")])


def two_outliers(tables: Tables) -> Found:
    """In every middle layer the largest gap of the spectrum comes after the second value."""
    adam = middle_layers(tables["metrics"].query("stage == 'adam'"))
    middle = middle_layers(tables["metrics"].query("stage == 'trained'"))
    share = (middle["rank_gap"] == 2).groupby(middle["replicate"]).mean()
    ratio = (middle["s2"] / middle["s3"]).groupby(middle["replicate"]).median()
    words = (
        f"gap after the second in {share.mean():.0%} of the middle layers;"
        f" s_2/s_3 {ratio.min():.2g} to {ratio.max():.2g} (medians of the layers), s_2"
        f" {middle['s2'].median():.3g}"
    )
    if len(adam):
        words += f"; where Adam ends in {(adam['rank_gap'] == 2).mean():.0%}"
    return Found([everywhere(share == 1)], words)


def rank_recovered(tables: Tables) -> Found:
    """The gap in the spectrum of W_{L/2}."""
    ranks = tables["networks"].query("stage == 'trained'")["rank_gap"]
    return Found([everywhere(ranks == 2)], f"k = {', '.join(map(str, ranks))}")


def _stages(tables: Tables, layer: int, column: str) -> tuple[pd.Series, pd.Series]:
    metrics = tables["metrics"].query("layer == @layer").set_index(["stage", "replicate"])
    return metrics.loc["trained", column], metrics.loc["untrained", column]


def statistics_learned(tables: Tables) -> Found:
    """What two coordinates of alpha_6 leave unexplained of either statistic, against the untrained
    network."""
    layer = min(PCA_LAYER, int(tables["metrics"]["layer"].max()))
    texts, points = [], []
    for column in ("knn_r2_axis", "knn_r2_orthogonal"):
        trained, untrained = _stages(tables, layer, column)
        texts.append(f"{column} {trained.mean():.3f}, untrained {untrained.mean():.3f}")
        points.append(below((1 - trained) / (1 - untrained), 0.1, unit="share", point=column))
    return Found(points, "; ".join(texts))


def changed_by_training(
    tables: Tables, layer: int, columns: tuple[str, ...], smaller: bool
) -> Found:
    """Whether training changed measures in the claimed direction, replicate by replicate."""
    layer = min(layer, int(tables["metrics"]["layer"].max()))
    points, texts = [], []
    for column in columns:
        trained, untrained = _stages(tables, layer, column)
        texts.append(f"{column} {trained.mean():.3f}, untrained {untrained.mean():.3f}")
        if smaller:
            points.append(less(trained, untrained, unit="ratio", point=column))
        else:
            points.append(less(untrained, trained, point=column))
    return Found(points, "; ".join(texts))


CLAIMS = {
    "bottleneck-fig2": [
        Claim(
            "learns-the-task",
            "the network predicts the dynamics of fresh starts",
            SOURCE,
            learned,
            "test cost below 0.1, figure 1's mark for a network that fits; the zero network has 1",
        ),
        Claim(
            "two-outliers",
            "exactly two singular values stand out in the bottleneck",
            "paper D, figure 2a",
            two_outliers,
            "largest gap after the second value in every layer of the middle half",
        ),
        Claim(
            "true-rank",
            "the network recovers the rank 2 of the task",
            SOURCE,
            rank_recovered,
            "k = 2 by the gap in the spectrum of W_{L/2}, in every network",
        ),
        Claim(
            "summary-statistics",
            "the first two principal components of layer 6 determine (w.v)^2 and ||(I - w w^T)"
            " v||^2",
            "paper D, section 5, figure 2b",
            statistics_learned,
            "1 - R^2 of either statistic from the two: below a tenth of the untrained network's",
        ),
        Claim(
            "paths-do-not-cross",
            "the dynamics on these two coordinates are self-consistent: they determine the next"
            " step",
            "paper D, section 5, figure 2b",
            partial(changed_by_training, layer=PCA_LAYER, columns=("step_r2",), smaller=False),
            "R^2 of the next step from the two coordinates: trained - untrained above 0",
        ),
        Claim(
            "orbits-collapse",
            "points on one orbit of the rotations around w are collapsed together in layer 2",
            "paper D, figure 2c",
            partial(
                changed_by_training,
                layer=DISTANCE_LAYER,
                columns=("orbit_ratio", "plane_ratio"),
                smaller=True,
            ),
            "distance within over between orbits: untrained / trained above 1",
        ),
        *theorem_claims(),
    ],
}
"""By figure, in the order in which they are told."""
