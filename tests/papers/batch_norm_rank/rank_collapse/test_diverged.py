"""Figure 1 with diverged networks: they have no accuracy, and the caption says so."""

import pytest

from runner.commands.kept import KeptFigure
from runner.papers.batch_norm_rank.rank_collapse.figures import draw_by_depth, say_rates
from runner.papers.batch_norm_rank.rank_collapse.quantities import trained
from runner.runs.provenance import REFERENCE


@pytest.fixture
def tables(tmp_path):
    return KeptFigure.of(REFERENCE / "quick" / "rank-fig1", tmp_path).tables()


def test_diverged_networks_are_in_a_strip_and_have_no_accuracy(tables):
    assert "NaN" not in say_rates(tables)
    rows, measures = tables["training"], ["train_loss", "train_accuracy"]
    is_batch = rows["normalization"] == "batch"
    tables["training"] = rows.assign(**{name: rows[name].mask(is_batch) for name in measures})
    picture, numbers = draw_by_depth(tables)
    by_norm = numbers.groupby("normalization")["train_accuracy"]
    assert by_norm.count().to_dict() == {"batch": 0, "none": numbers["depth"].nunique()}
    right = picture.axes[2]
    lines = [line for line in right.lines if line.get_label() == "batch norm"]
    assert len(lines) == 1 and min(lines[0].get_ydata()) > max(right.get_yticks())
    assert "Networks that diverged are drawn at the top (NaN)." in say_rates(tables)
    assert (
        (trained(tables).groupby("normalization")["train_accuracy"].max()["batch"]) == 0
    )  # claims
