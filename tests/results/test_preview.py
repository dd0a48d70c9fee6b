"""What the preview of one run says about its numbers."""

import pandas as pd
import pytest
from in_memory import kept_tables
from in_process import order_of

from runner.papers.bottleneck_structure.bottleneck.figures import overview
from runner.results.preview import against_keys, statistic, title, whole_ticks
from runner.results.style import sheet


@pytest.mark.parametrize(
    ("figure", "column", "said"),
    [
        ("bottleneck-linear", "depth", "median of 13 replicates"),
        ("bottleneck-linear", "soft_rank_se", "mean of 13 replicates"),
        ("bottleneck-linear", "replicate", "13 replicates"),
        ("bottleneck-linear", "statistic", "13 replicates"),
        ("bottleneck-example20", "depth", ""),  # nothing is random
    ],
)
def test_only_medians_are_called_medians(figure, column, said):
    assert statistic(kept_tables(figure), pd.DataFrame({column: [1]})) == said


def test_the_preview_names_the_training_procedure_of_its_run():
    tables = kept_tables("bottleneck-fig1")
    plain = {
        name: rows[rows["recipe"] == "plain"] for name, rows in tables.items() if "recipe" in rows
    }
    picture, _ = overview(plain)
    titles = " ".join(text.get_text() for axes in picture.axes for text in axes.texts)
    assert "ordinary training" in titles and "best solution" not in titles


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["study=rank_collapse"], "Rank by layer and training: depth 32, width 64, digits"),
        (
            ["study=rank_collapse", "depth=8", "data=gaussian", "train=false"],
            "Rank by layer and training: depth 8, width 64, Gaussian",
        ),
        (["study=bn_only"], "Error in training by number of samples: target width 10"),
        (["study=rank_chain"], "Very deep linear networks: averages over depth, widths 8 to 256"),
        (
            ["study=norm_finetuning", "scale=smoke"],
            "Training only γ and β, or another part, of a residual network: digits, randomly"
            " initialized, width 2",
        ),
        (
            ["study=rank_or_size", "scale=smoke"],
            "Training accuracy by rank and by size: random signs, width 16, digits",
        ),
    ],
)
def test_the_title_names_the_run_and_the_axes(words, said):
    (job,) = order_of(*words).jobs
    assert title(job.run) == said


def test_ticks_are_at_whole_layers_and_epochs_only():
    picture, ((whole, parts, texts),) = sheet(1, 3)
    texts.plot(["wide", "deep"], [0.5, 0.7])
    whole.plot([1, 2], [0.5, 0.7])
    whole.axhline(0.5)
    parts.plot([0.1, 0.2], [0.5, 0.7])
    assert any(tick % 1 for tick in whole.get_xticks())
    whole_ticks(picture)
    assert not any(tick % 1 for tick in whole.get_xticks())
    assert any(tick % 1 for tick in parts.get_xticks())


def test_without_an_overview_a_second_key_has_names_at_the_ends():
    rows = kept_tables("norm-layers")["metrics"]
    tables = {"metrics": rows[rows["target_width"] == rows["target_width"].max()]}
    picture, _ = against_keys("norm_layers", tables)
    words = {text.get_text() for axes in picture.axes for text in axes.texts}
    modes = {str(value) for value in tables["metrics"]["mode"].unique()}
    assert modes and modes <= words and not any(axes.get_legend() for axes in picture.axes)
