"""What the pictures of paper A show is what their tables have."""

import pytest
from in_memory import kept_tables

from runner.papers.norm_tuning.norm_layers.figures import draw_norm_layers


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_a_panel_says_once_and_within_itself_that_errors_are_above_it(scale):
    picture, _ = draw_norm_layers(kept_tables("norm-layers", scale))
    picture.draw_without_rendering()
    said = {
        axes: [text for text in axes.texts if "↑" in text.get_text()]
        for axes in picture.axes
    }  # fmt: skip
    assert [len(texts) for texts in said.values()] == [0, 1, 1]
    for axes, texts in said.items():
        for box in (text.get_window_extent() for text in texts):
            assert axes.bbox.x0 <= box.x0 < box.x1 <= axes.bbox.x1
