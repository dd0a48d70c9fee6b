"""The study `rank_chain`: its rows, its checks, its resume, and the command."""

import dataclasses
from math import inf

import pandas as pd
import pytest
import torch
from in_memory import context, tables_of

from runner.core.errors import InputError
from runner.papers.batch_norm_rank.rank_chain import workers
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
from runner.papers.batch_norm_rank.rank_chain.study import run

SMALL = {"widths": [8], "skips": [0.5, inf], "layers": 800, "chains": 16, "burn_in": 100}


def rows(restored=None, checkpoint=lambda make_state: None, **parameters):
    return tables_of(RankChain(**parameters), restored=restored, checkpoint=checkpoint)


def test_same_numbers_whatever_the_threads_and_the_other_points():
    alone = rows(**SMALL | {"skips": [inf]})["metrics"]
    torch.set_num_threads(2)
    try:
        together = rows(**SMALL | {"widths": [16, 8]})["metrics"]
    finally:
        torch.set_num_threads(1)
    together = together[(together["width"] == 8) & (together["skip"] == inf)]
    pd.testing.assert_frame_equal(alone, together.reset_index(drop=True), check_exact=True)


def test_restored_blocks_are_not_computed_again(monkeypatch):
    states = []
    whole = rows(checkpoint=lambda make: states.append(dict(make())), **SMALL)
    half = states[0]
    assert len(half) == 1
    computed = []
    original = workers.batch_means

    def counted(block, *arguments):
        computed.append(block.name)
        return original(block, *arguments)

    monkeypatch.setattr(workers, "batch_means", counted)
    resumed = rows(restored=half, **SMALL)
    assert len(computed) == 3 and not set(computed) & set(half)
    pd.testing.assert_frame_equal(whole["metrics"], resumed["metrics"], check_exact=True)


def test_auto_is_the_fastest_engine_that_applies():
    assert RankChain().engine_on("cpu") == "kernel"
    assert RankChain().engine_on("cuda") == "rotated"
    assert RankChain(law="uniform").engine_on("cpu") == "kernel"
    assert RankChain(law="uniform").engine_on("cuda") == "direct"
    for changed in ({"centred": True}, {"dtype": "float32"}):
        assert RankChain(**changed).engine_on("cpu") == "direct"
    kernel, auto = (rows(**SMALL, engine=engine)["metrics"] for engine in ("kernel", "auto"))
    pd.testing.assert_frame_equal(kernel, auto, check_exact=True)


def test_the_kernel_refuses_a_gpu():
    on_cuda = dataclasses.replace(context(), device=torch.device("cuda"))
    with pytest.raises(InputError, match="engine=kernel needs device=cpu, not cuda"):
        list(run(RankChain(**SMALL, engine="kernel"), on_cuda))


def test_spectrum_starts_collinear():
    spectrum = rows(measure="spectrum", widths=[8], skips=[inf], layers=5, chains=3)["spectrum"]
    assert set(spectrum["layer"]) == set(range(6))
    start = spectrum[spectrum["layer"] == 0].groupby("index")["singular_value"].max()
    assert start[1] == pytest.approx(8**0.5, rel=1e-2)
    assert start[2] < 0.5
    total = spectrum.assign(square=spectrum["singular_value"] ** 2)
    total = total.groupby(["layer", "replicate"])["square"].sum()
    assert total.to_numpy() == pytest.approx(8)  # Tr M = d


def test_expansions_keep_matrices_and_weights_for_every_gamma():
    found = rows(measure="expansion", widths=[6], skips=[1e-3, 2e-3], chains=3, draws=50)
    found = found["expansions"]
    by_skip = found.pivot(index="replicate", columns="skip")
    assert (by_skip["predicted", 1e-3] == by_skip["predicted", 2e-3]).all()
    difference = (by_skip["change", 1e-3] - by_skip["change", 2e-3]).abs()
    assert (difference < 0.01 * by_skip["change_se", 1e-3]).all()


def test_input_ranks_start_at_one():
    found = rows(measure="input_rank", widths=[8], skips=[inf], layers=800, chains=8, burn_in=50)
    found = found["input_ranks"]
    assert list(found["input_rank"]) == list(range(1, 8))
    first = found.iloc[0]
    assert first["soft_rank"] == 1 and first["rank_bound"] == pytest.approx(1)
    assert first["exponent"] > 0 > found["exponent"].iloc[-1]


LOST = {"law": "rademacher", "widths": [4], "skips": [inf], "chains": 4}
"""A row of zeros has a positive probability: all chains end in nan."""


@pytest.mark.parametrize(
    ("parameters", "lost"),
    [
        ({"layers": 300, "samples": 2, "burn_in": 200}, "4 of 4"),
        ({"layers": 300, "samples": 2, "measure": "spectrum"}, "4 of 4"),
        ({"samples": 1, "chains": 32, "layers": 32, "stride": 1, "burn_in": 0}, "27 of 32"),
    ],
)
def test_chains_that_ended_in_nan_are_told_and_one_is_enough_for_nan(parameters, lost, caplog):
    caplog.set_level("INFO", "runner")
    (table,) = rows(**LOST | parameters).values()
    messages = [text for text in caplog.messages if "nan" in text]
    assert messages == [f"d=4 gamma=inf: {lost} networks ended in nan"]
    if "soft_rank" in table:
        assert table[["soft_rank", "soft_rank_se", "soft_rank_sd"]].isna().all(axis=None)
