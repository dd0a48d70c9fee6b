"""Parameters that no study of this paper can run with: each is refused with what would be right."""

from math import inf

import pytest

from runner.commands import help
from runner.core.errors import InputError
from runner.papers.batch_norm_rank.pretraining.config import Pretraining
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse

AUTHORS_CHAIN = {
    "protocol": "authors",
    "widths": [5],
    "skips": [0.3],
    "chains": 2,
    "layers": 40_000,
}
FIGURE_2 = {"protocol": "authors", "data": "gaussian", "train": False, "dtype": "float64"}
FIGURE_2 |= {"width": 6, "samples": 6, "depth": 80, "activation": "linear"}


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (
            RankChain,
            {"widths": [16], "columns": 7},
            "columns=7 does not fit width=16: choose 8 to 16",
        ),
        (
            RankChain,
            {"widths": [16], "columns": 17},
            "columns=17 does not fit width=16: choose 8 to 16",
        ),
        (
            RankChain,
            {"layers": 640, "chains": 64, "stride": 11},
            "stride=11 .* above the 10 layers",
        ),
        (
            RankChain,
            {"widths": [256], "layers": 320},
            "stride=16 for width=256 is above the 10 layers",
        ),
        (
            RankChain,
            {"engine": "rotated", "law": "uniform"},
            "needs law=gaussian. Use engine=direct",
        ),
        (
            RankChain,
            {"engine": "kernel", "dtype": "float32"},
            "needs dtype=float64. Use engine=direct",
        ),
        (
            RankChain,
            {"engine": "kernel", "centred": True},
            "does not subtract the mean. Use engine=direct",
        ),
        (RankChain, {"measure": "input_rank", "engine": "direct"}, "needs engine=rotated"),
        (RankChain, {"measure": "input_rank", "law": "uniform"}, "needs law=gaussian$"),
        (RankChain, {"measure": "expansion", "skips": [inf]}, r"gamma must be at most 1e\+100"),
        (
            RankChain,
            {"measure": "expansion", "skips": [1e-9]},
            "is below 1e-06: rounding would lose gamma W",
        ),
        (
            RankChain,
            {"measure": "product", "skips": [1e-200]},
            "is below 1e-06: rounding would lose gamma W",
        ),
        (
            RankChain,
            {"skips": [1e-25], "burn_in": 1},
            "is below 2e-16: rounding would lose gamma W",
        ),
        (
            RankChain,
            {"dtype": "float32", "skips": [1e-8], "burn_in": 1},
            "below 1e-07.*dtype=float32",
        ),
        (
            RankChain,
            {"samples": 1, "centred": True},
            "samples=1: centred=true makes a single sample zero",
        ),
        (RankChain, {"measure": "product", "tau": 0.4}, "tau=0.4 changes nothing with measure=p"),
        (RankChain, AUTHORS_CHAIN | {"tau": 0.4}, "tau=0.4 changes nothing with protocol=authors"),
        (RankChain, AUTHORS_CHAIN | {"measure": "product"}, "protocol=text"),
        (RankChain, AUTHORS_CHAIN | {"skips": [inf]}, "protocol=text"),
        (RankChain, AUTHORS_CHAIN | {"law": "uniform"}, "protocol=text"),
        (RankChain, AUTHORS_CHAIN | {"layers": 15_000}, "protocol=text"),
        (RankCollapse, {"protocol": "authors"} | {"activation": "tanh"}, "protocol=text"),
        (
            RankCollapse,
            {"protocol": "authors"} | {"normalizations": ["batch_no_mean"]},
            "protocol=text",
        ),
        (RankCollapse, {"protocol": "authors"} | {"skip": 1.0}, "protocol=text"),
        (RankCollapse, FIGURE_2 | {"samples": 7}, "protocol=text"),
        (RankCollapse, FIGURE_2 | {"dtype": "float32"}, "protocol=text"),
        (RankCollapse, FIGURE_2 | {"init": "unit"}, "protocol=text"),
        (
            Pretraining,
            {"protocol": "text", "script": "fig4"},
            "script=fig4 needs protocol=authors, not text",
        ),
    ],
)
def test_wrong_parameters_name_what_would_be_right(config, changes, message):
    with pytest.raises(InputError, match=message):
        config(**changes)


def test_help_shows_the_parameters_of_a_measurement_only():
    shown = {
        word: help.of_study("rank_chain", [word])
        for word in ("measure=average", "measure=spectrum", "measure=expansion")
    }
    having = {name: [w for w in shown if f"  {name}: " in shown[w]] for name in ("draws", "tau")}
    assert having == {"draws": ["measure=expansion"], "tau": ["measure=average"]}
    assert "without effect here: draws, input_noise\n" in shown["measure=average"]
    assert help.of_study("rank_chain") == shown["measure=average"]
