"""What the pictures of paper D say is what their tables have."""

import re

import pandas as pd
import pytest
from matplotlib.figure import Figure

from runner.commands.kept import KeptFigure, read_tables
from runner.papers.bottleneck_structure import looks
from runner.papers.bottleneck_structure.bottleneck.figures import FIGURES as OF_DEPTHS
from runner.papers.bottleneck_structure.bottleneck.figures import collapsed, say_above
from runner.papers.bottleneck_structure.example20.figures import FIGURES as OF_EXAMPLE
from runner.papers.bottleneck_structure.linear.figures import FIGURES as OF_LINEAR
from runner.papers.bottleneck_structure.linear.figures import draw_linear
from runner.papers.bottleneck_structure.rank_one.figures import FIGURES as OF_RANK_ONE
from runner.papers.bottleneck_structure.rank_one.figures import draw_rank_one
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.symmetry.figures import FIGURES as OF_SYMMETRY
from runner.papers.bottleneck_structure.training import BETAS
from runner.runs.provenance import REFERENCE

DRAWINGS = [*OF_DEPTHS, *OF_EXAMPLE, *OF_LINEAR, *OF_RANK_ONE, *OF_SYMMETRY]
KEPT = [
    folder
    for scale in ("quick", "paper")
    for drawing in DRAWINGS
    if (folder := REFERENCE / scale / drawing.figure).is_dir()
]


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


def test_plain_training_that_learns_again_at_the_last_depth_does_not_collapse():
    norms = {6: 0.0, 10: 30.0}
    rows = [{"recipe": "plain", "depth": d, "parameter_norm": norm} for d, norm in norms.items()]
    assert collapsed(pd.DataFrame(rows)).empty


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_headline_of_rank_1_counts_the_bars(scale):
    tables = read_tables(REFERENCE / scale / "bottleneck-theorems")
    said = OF_RANK_ONE[0].findings[0].says(tables)
    picture, _ = draw_rank_one(tables)
    bars = [text.get_text() for text in picture.axes[0].texts if text.get_text().isdigit()]
    first, last = re.findall(r"(\d+|none)(?: of \d+)?(?: initializations)? fits? \d+", said)
    assert [first, last.replace("none", "0")] == [bars[0], bars[-1]]


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


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_captions_have_at_most_ninety_words_and_headlines_one_sentence(folder):
    figure, tables = KeptFigure.of(folder), read_tables(folder)
    caption = figure.caption(tables)
    assert len(caption.split()) <= 90
    finding = figure.header(tables).finding
    assert ". " not in finding and len(finding.split()) <= 22


@pytest.mark.parametrize("figure", ["bottleneck-fig2", "bottleneck-recipes"])
def test_captions_say_how_annealed_training_changes_the_weight_decay(figure):
    """The ridge is 0 for 200 steps, then up to five times lambda until 60 % of the steps."""
    annealed = RECIPES["annealed"]
    assert (annealed.warmup, annealed.peak, annealed.peak_end, BETAS) == (200, 5, 0.6, (0.9, 0.99))
    folder = REFERENCE / "quick" / figure
    caption = " ".join(KeptFigure.of(folder).caption().split())
    for words in ("no weight decay for 200 steps", "five times λ until 60 % of the steps, then λ"):
        assert words in caption
