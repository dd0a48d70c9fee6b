import re
from pathlib import Path

import pytest
from repository import REPOSITORY

from runner.commands import claims
from runner.core.catalogue import figure_names, figure_study
from runner.core.errors import InputError
from runner.results.claims import Claim, claims_of
from runner.results.quantities import quantity

PRESETS = REPOSITORY / "conf" / "figure"


def test_every_rule_is_told_before_anything_is_computed(capsys):
    assert claims.main(["fig4", "rank-fig3b", "scale=smoke", "seed=3"]) == 0
    told = capsys.readouterr().out
    assert "fig4: paper A, study bn_only, scale smoke" in told
    assert "replicates" in told
    for claim in claims_of("fig4", "bn_only"):
        assert f"      rule: {claim.printed} ({claim.tests})\n" in told
        assert claim.digest not in told
    places = re.findall(r"      in: (\S+)/norm_tuning/bn_only/claims.py:(\d+)\n", told)
    lines = (Path(claims.__file__).parents[1] / "papers/norm_tuning/bn_only/claims.py").open()
    assert '"exact"' in list(lines)[int(places[0][1]) - 1]


def test_each_kind_of_numbers_names_its_test():
    """And each rule of the papers has one of these tests."""
    tests = {
        "sign test, 5 %": excess("x").above(1),
        "sign test on both sides, 5 %": excess("x").within(1),
        "one counterexample refutes it; without one, it holds if at least 5 replicates were"
        " tested": excess("x").always("<=", 1),
        "t test, 5 %": estimated().below(1),
        "t test on both sides, 5 %": estimated().within(1),
        "binomial test, 5 %": counted().above(0.5),
    }
    for name, rule in tests.items():
        assert rule.test == name
        assert Claim("name", "words", "source", [rule, rule]).tests == name
    every = [claim for name in figure_names() for claim in claims_of(name, figure_study(name))]
    found = {
        rule.test.replace(f" {rule.quantity.of}", " replicates")
        for claim in every
        for rule in claim.rules
    }
    assert found <= {*tests}


@quantity("excess of {method}")
def excess(tables, method):
    """Return a number for each replicate."""


@quantity("estimate", numbers="estimates")
def estimated(tables):
    """Return an estimate."""


@quantity("fraction", numbers="counts")
def counted(tables):
    """Return a count."""


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
