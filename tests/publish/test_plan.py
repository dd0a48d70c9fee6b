import pytest

from runner.core.errors import InputError
from runner.publish import plan


def test_every_rule_is_told_before_anything_is_computed(capsys):
    assert plan.main(["fig4", "rank-fig3b", "scale=smoke", "seed=3"]) == 0
    told = capsys.readouterr().out
    assert "fig4: paper A, study bn_only, scale smoke" in told
    assert "replicates" in told and "      rule: " in told


def test_a_figure_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="'fig44'; did you mean 'fig4'"):
        plan.main(["fig44"])
