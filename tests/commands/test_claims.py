import re
from pathlib import Path

import pytest
from repository import REPOSITORY

from runner.commands import claims
from runner.core.catalogue import figure_names
from runner.core.errors import InputError

PRESETS = REPOSITORY / "conf" / "figure"


def test_every_rule_is_told_before_anything_is_computed(capsys):
    assert claims.main(["fig4", "rank-fig3b", "scale=smoke", "seed=3"]) == 0
    told = capsys.readouterr().out
    assert "fig4: paper A, study bn_only, scale smoke" in told
    assert "replicates" in told and "      rule: " in told
    places = re.findall(r"      in: (\S+)/norm_tuning/bn_only/claims.py:(\d+)\n", told)
    lines = (Path(claims.__file__).parents[1] / "papers/norm_tuning/bn_only/claims.py").open()
    assert '"exact"' in list(lines)[int(places[0][1]) - 1]


def test_a_figure_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="fig44 is unknown: did you mean 'fig4'"):
        claims.main(["fig44"])


def test_every_preset_states_its_seed(capsys):
    seeds = {
        name: re.findall(r"^seed: (\d+)", (PRESETS / f"{name}.yaml").read_text(), re.M)
        for name in figure_names()
    }
    assert all(len(seed) == 1 for seed in seeds.values()), seeds
    for name in ("fig4", "rank-fig2", "conserved", "bottleneck-linear"):
        assert claims.main([name, "scale=smoke"]) == 0
        assert f", seed {seeds[name][0]}" in capsys.readouterr().out
