"""Study `norm_classifier`: the construction copies a classifier, and trained copies learn."""

from in_memory import tables_of

from runner.papers.norm_tuning.norm_classifier.config import NormClassifier


def test_the_construction_predicts_as_the_classifier_and_training_lowers_the_loss():
    few, many = (
        tables_of(NormClassifier(target_width=3, replicates=2, steps=steps))["metrics"]
        for steps in (1, 60)
    )
    assert (many.query("method == 'construction'")["agreement"] == 1).all()
    loss = {
        name: rows.groupby("method")["train_loss"].max()
        for name, rows in {"few": few, "many": many}.items()
    }
    assert loss["few"]["target"] == loss["many"]["target"]
    for method in ("usual", "active"):
        assert loss["many"][method] < 0.8 * loss["few"][method]
    assert many.query("method == 'usual'")["test_accuracy"].gt(0.6).all()
