"""What the pictures of paper A show is what their tables have."""

import pytest
from in_memory import kept_tables

from runner.papers.norm_tuning.bn_only import tables as t
from runner.papers.norm_tuning.bn_only.figures import draw_start
from runner.papers.norm_tuning.looks import METHODS
from runner.papers.norm_tuning.norm_layers.figures import draw_norm_layers


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("key", [t.KEPT_ON, t.COORDINATES])
def test_the_strip_of_exact_networks_has_those_that_the_claims_count(scale, key):
    tables, series = kept_tables("norm-start", scale), key.format(t.ADAM)
    rows = t.with_series(tables["metrics"]).query("target_width <= 10 and series == @series")
    rows = rows[rows["width"] <= 2 * rows["target_width"] ** 2]
    axes = draw_start(tables)[0].axes[1]
    (heights,) = [
        line.get_ydata()
        for line in axes.lines
        if line.get_transform() == axes.transData
        and (line.get_marker(), line.get_color()) == (METHODS[series].marker, METHODS[series].color)
    ]
    assert len(heights) == len(rows)
    exact = rows["relative_mse"] < t.EXACT
    assert (heights < t.EXACT).tolist() == exact.tolist() and 0 < exact.sum() < len(rows)


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_a_panel_says_once_and_within_itself_that_errors_are_above_it(scale):
    picture, _ = draw_norm_layers(kept_tables("norm-layers", scale))
    picture.draw_without_rendering()
    said = {
        axes: [text for text in axes.texts if "↑" in text.get_text()]
        for axes in picture.axes
    }  # fmt: skip
    assert [len(texts) for texts in said.values()] == [0, 1, 0]
    for axes, texts in said.items():
        for box in (text.get_window_extent() for text in texts):
            assert axes.bbox.x0 <= box.x0 < box.x1 <= axes.bbox.x1
