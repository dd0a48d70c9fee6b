"""One comparer of tables: it names damage, and is quiet about chance and rounding."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from in_memory import kept_tables
from samples import samples

from runner.core.catalogue import rows_of
from runner.core.studies import Row
from runner.results.table_diff import FEWEST, ROWS, compare, distances, fault, is_rounding

KEPT = {
    "fig4/metrics": "bn_only",
    "constructions/metrics": "constructions",
    "what-grows/lowrank": "invariances",
    "rank-fig3a/metrics": "rank_chain",
    "rank-lemma7/expansions": "rank_chain",
    "bottleneck-fig2/networks": "symmetry",
    "bottleneck-fig1/theorems": "bottleneck",
    "rank-fig11/training": "pretraining",
}
"""Kept tables by figure and name: with and without replicates, errors, truth values."""


def content(place: str) -> tuple[bool, bool, bool]:
    """Say whether a table has replicates, errors, and truth values."""
    row_class = rows_of(KEPT[place])[place.partition("/")[2]]
    columns = {field.name: field.type for field in fields(row_class)}
    has_errors = any(column.endswith("_se") for column in columns)
    return "replicate" in row_class.keys, has_errors, bool in columns.values()


@pytest.fixture(scope="module", params=samples(KEPT, content))
def kept(request):
    """A kept table and its row class."""
    figure, name = request.param.split("/")
    row_class = rows_of(KEPT[request.param])[name]
    columns = ["run", *(field.name for field in fields(row_class))]
    return kept_tables(figure)[name][columns], row_class


def beyond(own, kept, row_class):
    """The columns that differ by more than chance."""
    compared = compare(own, kept, row_class)
    return set(compared["column"][compared["beyond"].astype(int) > 0])


def measured(table, row_class, kinds):
    return [name for name in table.select_dtypes(kinds) if name not in row_class.keys]


def test_equal_and_rounded_tables_do_not_differ_in_whatever_order(kept):
    table, row_class = kept
    assert not beyond(table.iloc[::-1], table, row_class)
    rounded = {name: table[name] * (1 + 1e-10) for name in measured(table, row_class, "float")}
    assert not beyond(table.assign(**rounded), table, row_class)


def test_duplicated_rows_and_missing_replicates_are_named(kept):
    table, row_class = kept
    assert beyond(pd.concat([table, table.iloc[[3]]]), table, row_class) == {ROWS}
    if "replicate" in row_class.keys:
        lost = table["replicate"] == table["replicate"].max()
        assert beyond(table[~lost], table, row_class) == {ROWS}


def test_flipped_truth_values_are_named(kept):
    table, row_class = kept
    for name in measured(table, row_class, "bool"):
        assert beyond(table.assign(**{name: ~table[name]}), table, row_class) == {name}


def test_one_replicate_times_a_billion_is_named(kept):
    table, row_class = kept
    one = table.get("replicate", pd.Series(table.index)) == 0
    names = [name for name in measured(table, row_class, "float") if not name.endswith("_se")]
    names = [name for name in names if (one & (table[name] != 0) & np.isfinite(table[name])).any()]
    own = table.assign(**{name: table[name].where(~one, table[name] * 1e9) for name in names})
    assert beyond(own, table, row_class) == set(names)


def in_numbers(table, row_class):
    """The columns with enough different numbers, none of them too small to tell from rounding."""
    names = measured(table, row_class, "float")
    return {n for n in names if table[n][table[n].abs() > 1e-7].nunique() >= FEWEST}


def test_all_numbers_times_a_factor_are_named_whatever_their_spread(kept):
    table, row_class = kept
    names = in_numbers(table, row_class)
    own = table.assign(**{name: table[name] * 1.05 for name in names})
    assert names and beyond(own, table, row_class) == names
    if "replicate" in row_class.keys:
        one = table["replicate"] == 0
        names = in_numbers(table[one], row_class)
        own = table.assign(**{name: table[name].where(~one, table[name] * 10) for name in names})
        assert beyond(own, table, row_class) == names


def test_errors_times_a_thousand_are_named_and_excuse_nothing(kept):
    table, row_class = kept
    names = [name for name in measured(table, row_class, "float") if name.endswith("_se")]
    own = table.assign(**{name: table[name] * 1000 for name in names})
    assert beyond(own, table, row_class) == set(names)
    if "replicate" in row_class.keys:
        return  # whose spread is the yardstick
    means = [name.removesuffix("_se") for name in names]
    own = own.assign(**{name: table[name] + 30 * table[f"{name}_se"] for name in means})
    assert beyond(own, table, row_class) == {*names, *means}


@dataclass(frozen=True)
class Metrics(Row):
    """Loss by width, with what else a table holds."""

    keys: ClassVar[tuple[str, ...]] = ("width", "replicate")

    width: int
    replicate: int
    loss: float
    rank: int
    fits: bool
    optimizer: str


def table(seed=0, n=8, **changes):
    """Three widths; the loss has standard deviation 1, a network in three does not fit."""
    noise = np.random.default_rng(seed)
    width, replicate = (axis.ravel() for axis in np.mgrid[1:4, :n])
    columns = {
        "run": "hash",
        "width": width,
        "replicate": replicate,
        "loss": 10 * width + noise.normal(size=3 * n),
        "rank": 20 + noise.integers(3, size=3 * n),
        "fits": noise.random(3 * n) < 2 / 3,
        "optimizer": "sgd",
    }
    return pd.DataFrame(columns).assign(**changes)


def diverged(rows: pd.DataFrame) -> pd.Series:
    """The loss, without a number in networks that do not fit."""
    return rows["loss"].where(rows["fits"])


def shifted(rows: pd.DataFrame) -> pd.Series:
    """The loss, larger at one of the widths."""
    return rows["loss"] + 5.0 * (rows["width"] == 2)


def test_another_draw_is_no_difference():
    """As of chaotic training on another processor: 900 points of five replicates."""
    own, kept = (
        pd.concat([table(seed, 5, run=f"hash{seed % 300}") for seed in seeds], ignore_index=True)
        for seeds in (range(300), range(300, 600))
    )
    lines = compare(own, kept, Metrics).set_index("column")
    assert lines["differ"].loc[["loss", "rank", "fits"]].min() > 1000
    assert lines["beyond"].sum() <= 1, lines["where"]


@pytest.mark.parametrize(
    ("own", "kept", "expected"),
    [
        (table(loss=np.nan, optimizer="adam"), table(), {"loss", "optimizer"}),
        (table(loss=np.inf), table(), {"loss"}),
        (table(loss=np.inf), table(loss=np.inf), set()),
        (table(1).assign(loss=diverged), table(2).assign(loss=diverged), set()),
        (table(1).assign(loss=shifted), table(2), {"loss"}),
        (table().assign(loss=1 + table()["loss"] / 10), table(loss=1.0), {"loss"}),  # own spread
        (table(loss=1 + 5e-4), table(loss=1.0), set()),  # other hardware may drift
    ],
)
def test_what_chance_explains(own, kept, expected):
    assert beyond(own, kept, Metrics) == expected
    lines = compare(own, kept, Metrics).set_index("column")
    assert ("loss" in expected) == lines.loc["loss", "where"].startswith("run=hash, width=")


def dust(seed: int, n: int = 8, size: float = 1e-16) -> np.ndarray:
    """Rounding errors of three widths, whose sizes spread by a factor of about ten; one is zero."""
    errors = size * np.exp(np.random.default_rng(seed).normal(size=3 * n))
    errors[0] = 0.0
    return errors


@pytest.mark.parametrize(
    ("own", "is_named"),
    [
        (dust(0) * 1.05, False),  # another processor does this
        (dust(1), False),
        (dust(0) * 10, False),
        (np.zeros(24), False),  # and this
        (dust(1) * 100, True),
        (dust(1) / 100, True),
        (np.where(np.arange(24) == 5, 1e-8, dust(0)), True),  # beyond rounding
    ],
)
def test_rounding_errors_are_compared_by_their_size(own, is_named):
    lines = compare(table(loss=own), table(loss=dust(0)), Metrics).set_index("column")
    assert (lines.loc["loss", "beyond"] > 0) == is_named
    assert is_named == bool(lines.loc["loss", "where"])


def test_columns_of_rounding_errors_are_told_from_others():
    kept = table()
    assert is_rounding(pd.Series(dust(0))) and is_rounding(pd.Series([np.nan, 0.0, 1e-7]))
    for other in ([0.0, 0.0], [1e-16, 2e-7], [np.nan], []):
        assert not is_rounding(pd.Series(other, dtype=float))
    assert not any(is_rounding(kept[name]) for name in ("rank", "fits", "optimizer", "loss"))


def test_lines_count_what_is_equal_rounded_and_other():
    kept = table(loss=1.0)
    own = kept.assign(loss=np.where(kept["width"] == 1, 1.0, 1 + 1e-12 * kept["replicate"]))
    own.loc[3, "loss"] = 4.0
    line = compare(own, kept, Metrics).set_index("column").loc["loss"]
    assert line[["equal", "rounding", "differ"]].tolist() == [9, 14, 1]
    assert line["largest"] == 0.75 and line["at"] == "run=hash, width=1, replicate=3: 4 and 1"
    nearly = compare(table(loss=2.00000001), table(loss=2.0), Metrics).set_index("column")
    assert nearly.loc["loss", "at"].endswith(": 2.00000001 and 2.0"), "the digits that differ"


def test_a_key_that_only_tells_the_tables_apart_matches_no_rows():
    a, b = (table().query(f"width == {width}").drop(columns="run") for width in (1, 2))
    lines = compare(a, b, Metrics).set_index("column")
    assert lines.loc[ROWS, "equal"] == 8 and "width" not in lines.index


def test_tables_without_a_row_class_are_matched_by_order():
    lines = compare(table(), table().head(20), None).set_index("column")
    assert lines.loc[ROWS, ["equal", "differ"]].tolist() == [20, 4]
    assert lines.loc["loss", "equal"] == 20


def test_distances_are_relative_to_the_larger():
    a = np.array([1.0, -1.0, 0.0, np.inf, np.inf, np.nan, 0.0])
    b = np.array([2.0, 1.0, 0.0, np.inf, -np.inf, np.nan, 1e-300])
    assert distances(a, b).tolist() == [0.5, 2.0, 0.0, 0.0, np.inf, 0.0, 1.0]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (table(replicates=8), None),
        (pd.concat([table(), table().head(2)]), "2 rows twice: run=hash, width=1, replicate=0"),
        (table().drop(index=3), "replicates are missing"),
        (table(replicates=9), "replicates are missing"),
        (table().assign(replicate=lambda t: t["replicate"] + 8, replicates=9), None),
    ],
)
def test_what_is_wrong_with_the_rows_of_a_table_is_said(rows, wrong):
    said = fault(rows, Metrics)
    assert said == wrong or said.startswith(wrong)


def test_kept_tables_are_whole(kept):
    assert fault(*kept) is None
