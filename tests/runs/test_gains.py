"""The gain of a user's activation: computed, or refused if a sum cannot give it."""

from math import pi, sqrt

import pytest
import torch
from in_process import run as runner
from scipy.special import digamma

from runner.core import choices
from runner.core.errors import InputError
from runner.networks.activations import ACTIVATIONS, Activation
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.papers.batch_norm_rank.rank_gradients.config import RankGradients
from runner.runs.gains import ACCURACY, require_gain, second_gain


def log_abs(Z):
    return Z.abs().log()


REFUSED = {
    "log_abs": log_abs,
    "root": lambda Z: Z.abs() ** -0.4,  # a finite second moment
    "inverse_root": lambda Z: Z.abs() ** -0.5,  # an infinite one
    "tan": torch.tan,
    "steep": lambda Z: (5 * Z).exp(),  # the first grid is too narrow
    "gaussian": lambda Z: (Z * Z / 4).exp(),
    "nan": torch.sqrt,
    "nothing": torch.zeros_like,
    "infinite": lambda Z: 1 / (Z > 1).double(),
}
ACCEPTED = {
    "swish": lambda Z: Z * Z.sigmoid(),
    "step": lambda Z: (Z > 0.3).double(),
    "rounded": lambda Z: (10 * Z).round() / 10,
    "fast": lambda Z: (3 * Z).exp(),
    "root": lambda Z: Z.abs().sqrt(),
    "noisy": lambda Z: Z * (1 + 0.1 * torch.randn(())),
    "dropout": lambda Z: Z.relu() * (torch.rand_like(Z) > 0.5),
}


@pytest.mark.parametrize("config", [RankCollapse, RankGradients])
@pytest.mark.parametrize("name", REFUSED)
def test_a_gain_that_a_sum_cannot_give_is_refused(name, config):
    choices.REGISTERED["activation"] = {name: REFUSED[name]}
    with pytest.raises(InputError, match=f"gain of activation={name} .* on one grid"):
        require_gain(config(activation=name, init="gain"))
    require_gain(config(activation=name, init="he"))


@pytest.mark.parametrize("name", ACCEPTED)
def test_gains_of_other_functions_are_accepted_also_with_jumps_and_noise(name):
    choices.REGISTERED["activation"] = {name: ACCEPTED[name]}
    before = torch.get_rng_state()
    require_gain(RankCollapse(activation=name, init="gain"))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_second_gain_of_the_programs_activations_is_the_first_and_known_ones_are_right():
    for sigma in ACTIVATIONS.values():
        assert second_gain(sigma) == pytest.approx(sigma.gain, rel=1e-9)
    moment = pi**2 / 8 + (digamma(0.5) + 0.6931471805599453) ** 2 / 4  # E log^2 |z|
    true = 1 / sqrt(moment)
    found = Activation(log_abs)
    assert abs(found.gain / true - 1) > 0.1, "what the check is for"
    assert abs(second_gain(found) / found.gain - 1) > ACCURACY


def test_a_run_is_refused_before_it_has_a_folder(tmp_path, capsys, monkeypatch):
    words = [f"outputs={tmp_path}", "device=cpu", f"activation={__name__}:log_abs", "init=gain"]
    assert runner(["study=rank_gradients", "scale=smoke", *words], monkeypatch) == 2
    told = capsys.readouterr().err
    assert "sum cannot give the gain" in told and "init=he" in told and "Traceback" not in told
    assert not list(tmp_path.rglob("metrics.csv")) and not list(tmp_path.rglob("run.log"))
