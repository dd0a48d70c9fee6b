"""What the pictures of paper D say is what their tables have."""


import pandas as pd
import pytest
from matplotlib.figure import Figure

from runner.commands.kept_figure import read_tables
from runner.papers.bottleneck_structure import looks
from runner.papers.bottleneck_structure.bottleneck.figures import collapsed, say_above
from runner.papers.bottleneck_structure.linear.figures import draw_linear
from runner.papers.bottleneck_structure.rank_one.figures import draw_rank_one
from runner.runs.provenance import REFERENCE


def spectrum(first: float, second: float, third: float) -> pd.DataFrame:
    rows = [
        {"layer": layer, "index": index, "singular_value": value}
        for layer in range(1, 9)
        for index, value in enumerate((first, second, third), start=1)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1.1, 0.9, 0.01), ["two near 1", "all others:\n≈ 0 inside"]),
        ((1.1, 0.9, 0.3), ["two near 1"]),
        ((2.4, 1.9, 0.01), []),
    ],
)
def test_singular_values_are_named_only_where_they_are_what_the_name_says(values, words):
    axes = Figure().subplots()
    looks.name_spectra(axes, spectrum(*values), rank=2)
    assert [text.get_text() for text in axes.texts] == words


def test_plain_training_collapses_from_the_first_depth_beyond_which_all_medians_are_zero():
    norms = {6: 30.0, 10: 0.0, 14: 40.0, 18: 0.0, 22: 0.0}
    rows = [
        {"recipe": recipe, "depth": depth, "replicate": replicate, "ridge": 1e-3}
        | {"loss": 1.1 if recipe == "annealed" else 1.0}
        | {"parameter_norm": norm if recipe == "plain" else 30.0}
        for recipe in ("plain", "annealed", "minimum")
        for depth, norm in norms.items()
        for replicate in range(3)
    ]
    metrics = pd.DataFrame(rows)
    assert sorted(set(collapsed(metrics)["depth"])) == [18, 22]
    said = say_above({"metrics": metrics})
    assert said.startswith(
        "The loss of annealed training is 10 to 10 % above the best solution found"
    )






def test_a_dead_network_does_not_stretch_the_axis_of_the_kernel():
    tables = read_tables(REFERENCE / "paper" / "bottleneck-theorems")
    assert tables["metrics"]["ntk_trace"].min() < 1e-60
    picture, _ = draw_rank_one(tables)
    low, high = picture.axes[1].get_ylim()
    assert high / low < 1e6


def test_networks_that_end_at_zero_do_not_stretch_the_residuals():
    tables = read_tables(REFERENCE / "paper" / "bottleneck-linear")
    assert (tables["metrics"]["rank"] == 0).any()
    picture, _ = draw_linear(tables)
    bands = [band for each in picture.axes[1].collections for band in each.get_paths()]
    assert min(band.vertices[:, 1].min() for band in bands) > 1e-5




