"""What paper D says of figure 2, judged on the trained and, for comparison, the untrained
network.
"""

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import middle_layers
from runner.papers.bottleneck_structure.theorem_claims import claim_theorems
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import below, everywhere, less

SOURCE = "paper D, section 5 and figure 2"


@claim(
    figure="bottleneck-fig2",
    name="learns-the-task",
    statement="the network predicts the dynamics of fresh starts",
    source=SOURCE,
    expected="test cost below 0.1, figure 1's mark for a network that fits; the zero network has 1",
)
def learned(tables: Tables) -> Found:
    """The trained network predicts the costs of fresh starts better than the zero network does."""
    trained = tables["networks"].query("stage == 'trained'")
    return Found([below(trained["test_cost"], 0.1, point="test cost")])


@claim(
    figure="bottleneck-fig2",
    name="two-outliers",
    statement="exactly two singular values stand out in the bottleneck",
    source="paper D, figure 2a",
    expected="largest gap after the second value in every layer of the middle half",
)
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


@claim(
    figure="bottleneck-fig2",
    name="true-rank",
    statement="the network recovers the rank 2 of the task",
    source=SOURCE,
    expected="k = 2 by the gap in the spectrum of W_{L/2}, in every network",
)
def rank_recovered(tables: Tables) -> Found:
    """The gap in the spectrum of W_{L/2}."""
    ranks = tables["networks"].query("stage == 'trained'")["rank_gap"]
    return Found([everywhere(ranks == 2)], f"k = {', '.join(map(str, ranks))}")


def _stages(tables: Tables, layer: int, column: str) -> tuple[pd.Series, pd.Series]:
    metrics = tables["metrics"].query("layer == @layer").set_index(["stage", "replicate"])
    return metrics.loc["trained", column], metrics.loc["untrained", column]


@claim(
    figure="bottleneck-fig2",
    name="summary-statistics",
    statement="the first two principal components of layer 6 determine"
    " (w.v)^2 and ||(I - w w^T) v||^2",
    source="paper D, section 5, figure 2b",
    expected="1 - R^2 of either statistic from the two: below a tenth of the untrained network's",
)
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


@claim(
    figure="bottleneck-fig2",
    name="orbits-collapse",
    statement="points on one orbit of the rotations around w are collapsed together in layer 2",
    source="paper D, figure 2c",
    expected="distance within over between orbits: untrained / trained above 1",
    layer=DISTANCE_LAYER,
    columns=("orbit_ratio", "plane_ratio"),
    smaller=True,
)
@claim(
    figure="bottleneck-fig2",
    name="paths-do-not-cross",
    statement="the dynamics on these two coordinates are self-consistent:"
    " they determine the next step",
    source="paper D, section 5, figure 2b",
    expected="R^2 of the next step from the two coordinates: trained - untrained above 0",
    layer=PCA_LAYER,
    columns=("step_r2",),
    smaller=False,
)
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


claim_theorems(figure="bottleneck-fig2")
