"""What the preview of one run says about its numbers."""

import pandas as pd
import pytest
from in_memory import kept_tables

from runner.papers.bottleneck_structure.bottleneck.figures import overview
from runner.results.preview import statistic


@pytest.mark.parametrize(
    ("study", "figure", "column", "said"),
    [
        ("linear", "bottleneck-linear", "depth", "median of 13 replicates"),
        ("linear", "bottleneck-linear", "replicate", "13 replicates"),
        ("linear", "bottleneck-linear", "statistic", "13 replicates"),
        ("example20", "bottleneck-example20", "depth", ""),  # nothing is random
    ],
)
def test_only_medians_are_called_medians(study, figure, column, said):
    assert statistic(study, kept_tables(figure), pd.DataFrame({column: [1]})) == said


def test_the_preview_names_the_training_procedure_of_its_run():
    tables = kept_tables("bottleneck-fig1")
    plain = {
        name: rows[rows["recipe"] == "plain"] for name, rows in tables.items() if "recipe" in rows
    }
    picture, _ = overview(plain)
    titles = " ".join(text.get_text() for axes in picture.axes for text in axes.texts)
    assert "ordinary training" in titles and "best solution" not in titles
