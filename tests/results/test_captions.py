"""Captions: what is said of a figure from its configuration and its tables, and of what is not."""

import pandas as pd
import pytest

from runner.data import LABELLED
from runner.results.captions import caption, facts
from runner.results.labels import DATASETS
from runner.results.rows import select, spread

TABLES = {
    "metrics": pd.DataFrame(
        {
            "data": ["digits", "digits"],
            "depth": [32.0, 4.0],
            "width": 64,
            "seed": 0,
            "replicates": 5,
            "epoch": [1, 2],
        }
    ),
    "training": pd.DataFrame({"depth": [8], "learning_rate": [0.1]}),
}


def test_facts_are_those_of_the_runs_and_no_others():
    found = list(facts("rank_collapse", TABLES))
    assert found == ["data: digits", "depth: 4 to 32", "width: 64", "5 replicates", "seed: 0"]


@pytest.mark.parametrize(
    ("study", "rows", "expected"),
    [
        ("rank_collapse", {"data": "cifar10", "train_images": [10_000.0], "samples": 512},
         ["data: CIFAR-10", "training images: 10,000",
          "inputs on which ranks are measured: 512"]),
        ("rank_collapse", {"data": "cifar10", "train_images": [float("nan")], "samples": 512},
         ["data: CIFAR-10", "inputs on which ranks are measured: 512"]),
        ("rank_one", {"samples": [4, 24, 8]}, ["training points: 4 to 24"]),
        ("rank_chain", {"width": [8, 1024], "chains": 32, "data": "none"},
         ["width: 8 and 1,024", "32 networks"]),
    ],
)  # fmt: skip
def test_facts_name_training_images_samples_and_networks(study, rows, expected):
    assert list(facts(study, {"metrics": pd.DataFrame(rows)})) == expected


def test_every_dataset_has_its_name():
    assert set(LABELLED) < set(DATASETS)


def test_a_caption_has_what_where_and_with_which_overrides():
    text = caption(
        "paper B, figure 1: the rank", "Bars are ranges", "rank_collapse", TABLES, "quick", ["L=3"]
    )
    explained, settings = text.split("\n\n")
    assert explained == "Paper B, figure 1: the rank. Drawn with L=3. Bars are ranges."
    assert settings.startswith("Data: d") and settings.endswith("scale: quick.\n")
    assert max(map(len, text.splitlines())) <= 100


def test_a_caption_says_which_rows_are_absent():
    def say(tables):
        select(tables["metrics"], depth=77)
        return "never"

    text = caption("a figure", say, "rank_collapse", TABLES)
    assert "No rows: depth=77." in text and "never" not in text
    assert "Table metrics has no rows." in caption("a figure", say, "rank_collapse", {})


def test_a_spread_has_median_and_range_of_the_replicates():
    rows = pd.DataFrame({"method": "a", "loss": [1.0, 5.0, 2.0, float("nan")], "rank": 3})
    found = spread(rows, ["method"], ["loss", "rank"])
    ends = [name + end for name in ("loss", "rank") for end in ("", "_low", "_high")]
    assert list(found) == ["method", *ends]
    assert found.loc[0, ["loss", "loss_low", "loss_high"]].tolist() == [2.0, 1.0, 5.0]
