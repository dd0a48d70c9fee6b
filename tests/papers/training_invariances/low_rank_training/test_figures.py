"""What the captions of `low_rank_training` say of networks that diverge."""

from repository import REPOSITORY

from runner.papers.training_invariances.low_rank_training.figures import say_without_decay
from runner.publish.reference import read_tables

KEPT = REPOSITORY / "outputs" / "reference" / "quick" / "invariances-fig4"


def caption(diverged: dict[float, int]) -> str:
    """Of the tables kept at quick, so many networks of ten classes diverged at each gain."""
    layers = read_tables(KEPT)["layers"].assign(diverged=False)
    lost = (layers["classes"] == 10) & (
        layers["replicate"] < layers["gain"].map(diverged).fillna(0)
    )
    return say_without_decay({"layers": layers.assign(diverged=lost)})


def test_those_of_which_half_diverged_are_named_and_no_others():
    assert caption({}).endswith("Networks that diverge are left out.")
    assert caption({0.25: 2}).endswith("Networks that diverge are left out.")
    said = caption({0.25: 3, 1.0: 5, 2.0: 1})
    assert said.endswith(
        "left out: 3 of 5 on digits with 10 classes (mlp, cross entropy, gain 0.25);"
        " 5 of 5 on digits with 10 classes (mlp, cross entropy, gain 1)."
    )
