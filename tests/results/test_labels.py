"""Labels by name, and of names that have none."""

from runner.results.labels import Labels


def test_a_name_without_a_label_stands_for_itself():
    labels = Labels() | {"a": "known"}
    assert (labels["a"], labels["z"]) == ("known", "z")
    assert "z" not in labels and (labels | {"b": "more"})["y"] == "y"
