"""What paper D says of figure 2, judged on the trained and, for comparison, the untrained
network.
"""

import pandas as pd

from runner.papers.bottleneck.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck.symmetry.tables import middle_layers
from runner.papers.bottleneck.theorem_claims import claim_theorems
from runner.results.claims import (
    Judgement,
    Tables,
    all_of,
    claim,
    compare,
    decide,
    trimmed,
    undecided,
)

SOURCE = "paper D, section 5 and figure 2"


@claim(
    figure="bottleneck-fig2",
    name="learns-the-task",
    statement="the network predicts the dynamics of fresh starts",
    source=SOURCE,
)
def learned(tables: Tables) -> Judgement:
    """The trained network predicts the costs of fresh starts better than the zero network does."""
    cost = tables["networks"].query("stage == 'trained'")["test_cost"]
    measured = f"test cost {cost.mean():.2g}, at most {cost.max():.2g}; the zero network 1"
    # Figure 1's mark for a network that fits.
    return decide(bool((cost < 0.1).all()), measured, "below 0.1 in every replicate")


@claim(
    figure="bottleneck-fig2",
    name="two-outliers",
    statement="exactly two singular values stand out in the bottleneck",
    source="paper D, figure 2a",
)
def two_outliers(tables: Tables) -> Judgement:
    """In every middle layer the largest gap of the spectrum comes after the second value."""
    middle = middle_layers(tables["metrics"].query("stage == 'trained'"))
    share = (middle["rank_gap"] == 2).groupby(middle["replicate"]).mean()
    ratio = (middle["s2"] / middle["s3"]).groupby(middle["replicate"]).median()
    measured = (
        f"gap after the second in {share.mean():.0%} of the middle layers;"
        f" median s_2/s_3 {ratio.mean():.2g}, s_2 {middle['s2'].median():.3g}"
    )
    expected = "in every middle layer of every replicate"
    return decide(bool((share == 1).all()), measured, expected)


@claim(
    figure="bottleneck-fig2",
    name="true-rank",
    statement="the network recovers the rank 2 of the task",
    source=SOURCE,
)
def rank_recovered(tables: Tables) -> Judgement:
    """The gap in the spectrum of W_{L/2}."""
    ranks = tables["networks"].query("stage == 'trained'")["rank_gap"]
    counts = ", ".join(map(str, ranks))
    return decide(bool((ranks == 2).all()), f"k = {counts}", "k = 2 in every replicate")


def _stages(tables: Tables, layer: int, column: str) -> tuple[pd.Series, pd.Series]:
    metrics = tables["metrics"].query("layer == @layer").set_index(["stage", "replicate"])
    return metrics.loc["trained", column], metrics.loc["untrained", column]


@claim(
    figure="bottleneck-fig2",
    name="summary-statistics",
    statement="the first two principal components of layer 6 determine"
    " (w.v)^2 and ||(I - w w^T) v||^2",
    source="paper D, section 5, figure 2b",
)
def statistics_learned(tables: Tables) -> Judgement:
    """What two coordinates of alpha_6 leave unexplained of either statistic, against the untrained
    network: a tenth of it or less, in every trimmed replicate."""
    layer = min(PCA_LAYER, int(tables["metrics"]["layer"].max()))
    texts, ratios = [], []
    for column in ("knn_r2_axis", "knn_r2_orthogonal"):
        trained, untrained = _stages(tables, layer, column)
        texts.append(f"{column} {trained.mean():.3f}, untrained {untrained.mean():.3f}")
        ratios.append((1 - trained) / (1 - untrained))
    worst = trimmed(pd.concat(ratios)).max()
    measured = f"{'; '.join(texts)}; unexplained share {worst:.2g} of the untrained one's"
    expected = "u determined by two coordinates: unexplained share below a tenth of the untrained"
    if len(ratios[0]) < 3:
        return undecided(measured, expected)
    return decide(bool(worst < 0.1), measured, expected)


@claim(
    figure="bottleneck-fig2",
    name="orbits-collapse",
    statement="points on one orbit of the rotations around w are collapsed together in layer 2",
    source="paper D, figure 2c",
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
    layer=PCA_LAYER,
    columns=("step_r2",),
    smaller=False,
)
def changed_by_training(
    tables: Tables, layer: int, columns: tuple[str, ...], smaller: bool
) -> Judgement:
    """Whether training changed measures in the claimed direction, replicate by replicate."""
    layer = min(layer, int(tables["metrics"]["layer"].max()))
    verdicts, texts = [], []
    for column in columns:
        trained, untrained = _stages(tables, layer, column)
        pair = (trained, untrained) if smaller else (untrained, trained)
        verdicts.append(compare(*pair))
        texts.append(f"{column} {trained.mean():.3f}, untrained {untrained.mean():.3f}")
    expected = f"{'smaller' if smaller else 'larger'} after training in all replicates"
    return Judgement(all_of(verdicts), "; ".join(texts), expected)


claim_theorems(figure="bottleneck-fig2")
