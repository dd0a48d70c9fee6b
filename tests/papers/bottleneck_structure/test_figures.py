"""What the pictures of paper D show is what their tables have."""

import math
import re

import pandas as pd
import pytest
from in_memory import kept_tables
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure import looks
from runner.papers.bottleneck_structure.bottleneck.figures import (
    caption_bottleneck,
    collapsed,
    draw_bottleneck,
    draw_recipes,
)
from runner.papers.bottleneck_structure.linear.figures import draw_linear
from runner.papers.bottleneck_structure.rank_one.figures import draw_rank_one
from runner.papers.bottleneck_structure.stability.figures import draw_rates, say_bounded
from runner.papers.bottleneck_structure.symmetry.figures import COLLAPSE, say_orbits
from runner.results.drawing import drawing_of


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1.1, 0.9, 0.01), ["two near 1", "all others:\n≈ 0 inside"]),
        ((1.1, 0.9, 0.3), ["two near 1", "all others"]),
        ((2.4, 1.9, 0.01), ["all others"]),
    ],
)
def test_singular_values_are_named_only_where_they_are_what_the_name_says(values, words):
    spectrum = pd.DataFrame({"layer": range(1, 9)}).merge(
        pd.DataFrame({"index": (1, 2, 3), "singular_value": values}), how="cross"
    )
    axes = Figure().subplots()
    looks.name_spectra(axes, spectrum, rank=2)
    assert [text.get_text() for text in axes.texts] == words


@pytest.mark.parametrize(
    ("norms", "depths"),
    [
        ({6: 30.0, 10: 0.0, 14: 40.0, 18: 0.0, 22: 0.0}, {18, 22}),
        ({6: 0.0, 10: 30.0}, set()),
    ],
)
def test_plain_training_collapses_where_all_medians_are_zero_from_a_depth_on(norms, depths):
    rows = pd.DataFrame({"depth": norms.keys(), "parameter_norm": norms.values()})
    assert set(collapsed(rows.assign(recipe="plain"))["depth"]) == depths


def test_networks_that_end_at_zero_stretch_no_axis():
    tables = kept_tables("bottleneck-theorems", "paper")
    assert tables["metrics"]["ntk_trace"].min() < 1e-60
    low, high = draw_rank_one(tables)[0].axes[1].get_ylim()
    assert high / low < 1e6
    tables = kept_tables("bottleneck-linear", "paper")
    zero = tables["metrics"].eval("depth == 64 and replicate < 4")  # so few that medians stay
    norms = ["parameter_norm", "representation_cost", "first_correction", "second_correction"]
    tables["metrics"].loc[zero, ["rank", *norms]] = 0
    picture, _ = draw_linear(tables)
    bands = [path for band in picture.axes[1].collections for path in band.get_paths()]
    assert min(path.vertices[:, 1].min() for path in bands) > 1e-5


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_names_of_ranks_in_figure_1_touch_neither_marks_nor_other_names(scale):
    picture, _ = draw_bottleneck(kept_tables("bottleneck-fig1", scale))
    picture.draw_without_rendering()
    panels = [axes for axes in picture.axes if any("rank" in t.get_text() for t in axes.texts)]
    assert len(panels) in (2, 3)
    for axes in panels:
        names = [text.get_window_extent() for text in axes.texts if "rank" in text.get_text()]
        points = [line.get_transform().transform(line.get_xydata()) for line in axes.lines]
        assert len(names) >= 2
        for n, box in enumerate(names):
            assert not any(box.contains(*point) for line in points for point in line)
            assert not any(box.overlaps(other) for other in names[:n])


def test_losses_below_the_best_solution_are_on_a_rail_and_no_line_leaves_the_panel():
    picture, _ = draw_recipes(kept_tables("bottleneck-recipes", "quick"))
    axes = picture.axes[1]
    assert "≤ 0.1\u00a0%" in [text.get_text() for text in axes.texts]
    low, high = axes.get_ylim()
    heights = [y for line in axes.lines for y in line.get_ydata()]
    assert len(heights) > 20 and all(low < y < high for y in heights)


def test_each_line_of_a_depth_or_a_rate_has_its_own_marker_which_stands_next_to_its_name():
    tables = kept_tables("bottleneck-rates", "quick")
    picture, _ = draw_rates(tables)
    for axes, symbol in ((picture.axes[0], "L"), (picture.axes[3], "c")):
        named = [text for text in axes.texts if text.get_text().startswith(f"{symbol} = ")]
        heights = [text.get_position()[1] for text in named]
        sizes = [float(text.get_text().partition("= ")[2]) for text in named]
        rows = sorted(zip(heights, sizes, strict=True), reverse=True)
        assert [size for _, size in rows] == sorted(sizes)
        lines = [line for line in axes.lines if line.get_marker() not in ("", "None")]
        keys = [line for line in lines if line.get_transform() == axes.transAxes]
        looks = {(line.get_marker(), line.get_color()) for line in lines if line not in keys}
        shown = {line.get_ydata()[0]: (line.get_marker(), line.get_color()) for line in keys}
        assert looks == {*shown.values()}
        column = {"L": "depth", "c": "rate"}[symbol]
        expected = {*tables["metrics"][column]} - {0}
        assert {*sizes} == expected and len({shown[height] for height in heights}) == len(sizes)


def test_no_median_of_fewer_than_three_networks_is_drawn():
    tables = kept_tables("bottleneck-rates", "quick")
    rows = tables["metrics"]
    lost = rows.eval("task == 'figure-1' and depth == 18 and rate == 0.1 and replicate > 1")
    tables["metrics"] = rows.assign(train_cost=rows["train_cost"].mask(lost, 1.0))
    curvature, falls = draw_rates(tables)[0].axes[:2]
    curves = [line for line in curvature.lines if line.get_marker() not in ("", "None")]
    curves = [line for line in curves if len(line.get_xdata()) > 1]
    heights = [dict(zip(*curve.get_data(), strict=True))[0.1] for curve in curves]
    assert len(heights) == rows["depth"].nunique()
    assert sum(map(math.isfinite, heights)) == len(heights) - 1
    written = [text.get_text() for text in falls.texts if "%" in text.get_text()]
    assert len(written) == len(heights) - 1


def test_the_numbers_at_the_falls_of_the_kernel_are_those_of_the_headline():
    tables = kept_tables("bottleneck-rates", "quick")
    falls = draw_rates(tables)[0].axes[1]
    written = {text.get_text() for text in falls.texts if "%" in text.get_text()}
    said = re.findall(r"[0-9.]+(?= %| to)", say_bounded(tables))
    assert {f"{number} %" for number in said} <= written
    marked = {f"{100 * y:.0f} %" for line in falls.lines for y in line.get_ydata()}
    assert written <= marked


def test_labels_of_learning_rates_do_not_overlap():
    metrics = kept_tables("bottleneck-rates", "quick")["metrics"]
    rates, close = sorted(metrics["rate"].unique()), (0, 0.05, 0.1, 0.15, 0.2)
    rates = metrics["rate"].map(dict(zip(rates, close, strict=True)))
    picture, _ = draw_rates({"metrics": metrics.assign(rate=rates)})
    picture.draw_without_rendering()
    labels = [label.get_window_extent() for label in picture.axes[0].get_xticklabels()]
    assert len(labels) >= 5
    assert not any(a.overlaps(b) for a, b in zip(labels, labels[1:], strict=False))


def test_lines_of_depths_and_of_rates_share_neither_color_nor_marker():
    picture, _ = draw_rates(kept_tables("bottleneck-rates", "quick"))
    looks = [
        {get(line) for line in axes.lines if line.get_transform() == axes.transAxes}
        for axes in (picture.axes[0], picture.axes[3])
        for get in (lambda line: line.get_color(), lambda line: line.get_marker())
    ]
    depths, depth_marks, rates, rate_marks = looks
    assert len(depths) == len(depth_marks) == 3
    assert not depths & rates
    assert depth_marks & rate_marks == {"o"}, "the mark of networks before gradient descent"


def test_the_fall_of_the_kernel_compares_the_same_networks_before_and_after():
    tables = kept_tables("bottleneck-rates", "quick")
    rows = tables["metrics"].query("task == 'figure-1' and rate in (0, 0.1)")
    trace = rows.pivot(index=["depth", "replicate"], columns="rate", values="ntk_trace")
    costs = rows.pivot(index=["depth", "replicate"], columns="rate", values="train_cost")
    assert (costs[0] < 0.1).all()
    ratios = (trace[0.1] / trace[0])[costs[0.1] < 0.1].groupby("depth")
    medians = ratios.median()[ratios.count() >= 3]
    said = re.findall(r"[0-9.]+(?= %| to)", say_bounded(tables))
    assert [float(number) for number in said] == [
        round(100 * medians.min()), round(100 * medians.max())
    ]  # fmt: skip


def test_captions_say_at_which_depth_and_in_how_many_tasks_training_ends_below_the_best():
    tables = kept_tables("bottleneck-fig1", "quick")
    said = "(at depth 6 training ends lower in 3 of 8 tasks)"
    recipes = drawing_of("bottleneck-recipes", "bottleneck").caption
    assert said in caption_bottleneck(tables) and said in recipes(tables)
    metrics = tables["metrics"]
    alone = metrics[metrics["recipe"] == "minimum"]
    higher = metrics.assign(loss=metrics["loss"] * (1 + (metrics["recipe"] != "minimum")))
    for rows in (alone, higher):
        assert "lower" not in caption_bottleneck({"metrics": rows})


def test_the_headline_of_figure_2_has_the_ratios_of_both_training_procedures():
    tables = kept_tables("bottleneck-fig2", "quick")
    said = say_orbits(tables, collapse=COLLAPSE["fails"])
    assert "do not collapse" in said and "(annealed: 7\u00a0%)" in said
    rows = tables["metrics"].query("stage == 'trained' and layer == 2 and recipe == 'constant'")
    assert f"are {100 * rows['plane_ratio'].median():.0f}\u00a0% of" in said
    alone = {name: rows[rows["recipe"] == "constant"] for name, rows in tables.items()
             if "recipe" in rows}  # fmt: skip
    assert "before training" in say_orbits(alone, collapse=COLLAPSE["fails"])
