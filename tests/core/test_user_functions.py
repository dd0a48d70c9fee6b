"""Functions that the user has registered under names."""

import json
import os
import sys

import pytest
import torch
from in_process import composed
from in_process import run as run_here

from runner.core import catalogue, choices
from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.core.studies import check_fields
from runner.core.user_functions import NAMED, place_of, register, register_as_parent
from runner.networks.activations import activation_of
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.results.style import own_look
from runner.runs.run import Run, functions_of, read_config
from runner.training.optimizers import SGD


def halved(Z):
    return Z / 2


def doubled(Z):
    return Z * 2


class Still(SGD):
    """An optimizer."""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setenv(NAMED, "")
    choices.REGISTERED.clear()


def test_a_name_is_a_choice_in_checks_and_help_and_its_code_counts(monkeypatch, capsys):
    words = ("study=rank_collapse", "normalizations=[none,halved]")
    with pytest.raises(InputError, match="normalizations=halved is unknown"):
        composed(*words)
    register("normalization", "halved", halved)
    config = composed(*words)[1]
    assert functions_of(config) == (place_of(halved),)
    assert lookup("normalization", "halved", {}) is halved
    assert run_here(["study=rank_collapse", "--help"], monkeypatch) == 0
    assert "from none, batch, batch_no_mean, layer, rms, halved" in capsys.readouterr().out
    assert functions_of(composed("study=rank_collapse")[1]) == ()


def test_names_of_a_kind_can_be_joined_and_chosen():
    register("optimizer", "halved", Still)
    more, some = choices.OPTIMIZERS + ("adamw",), choices.OPTIMIZERS.only("sgd")
    assert [*more] == ["sgd", "momentum", "adam", "adamw", "halved"] and "halved" in more
    assert [*some] == ["sgd", "halved"] and "adam" not in some
    check_fields(LowRankTraining(optimizer="halved"))


def test_an_activation_is_differentiated_by_torch():
    register("activation", "halved", halved)
    sigma = activation_of("halved")
    assert sigma.function(torch.tensor(3.0)) == 1.5 and sigma.derivative is None
    assert sigma.gain == pytest.approx(2)


def test_worker_processes_register_the_same():
    register("normalization", "halved", halved)
    assert json.loads(os.environ[NAMED]) == {"normalization": {"halved": place_of(halved)}}
    choices.REGISTERED.clear()
    register_as_parent()
    assert {"normalization": {"halved": halved}} == choices.REGISTERED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("norm", "halved", halved), "norm cannot be registered: did you mean 'normalization'?"),
        (("normalization", "batch", halved), "batch is one of the program's: choose another name"),
        (("normalization", "a b", halved), "'a b' cannot be a name"),
        (("optimizer", "halved", halved), r"halved must be a class with step\(gradients, rates\)"),
        (("normalization", "halved", lambda Z: Z), "in a separate file"),
        (("activation", "still", Still), r"a function is needed, not a class \(\S+Still\)"),
        (("activation", "tanh2", torch.nn.Tanh()), r"not an object \(torch\S*Tanh\)"),
        (("normalization", "doubled", halved), r"doubled is \S+:doubled: choose another name"),
    ],
)
def test_what_cannot_be_registered_is_one_line(arguments, said):
    register("normalization", "doubled", doubled)
    register("normalization", "doubled", doubled)  # again is no error
    with pytest.raises(InputError, match=said):
        register(*arguments)


def test_engines_with_a_pass_of_their_own_refuse():
    register("law", "halved", halved)
    register("optimizer", "halved", Still)
    config = composed("study=rank_chain", "law=halved")[1]
    assert config.engine_on("cpu") == config.engine_on("cuda") == "direct"
    for word in ("engine=kernel", "engine=rotated"):
        with pytest.raises(InputError, match="law=halved.* Use engine=direct"):
            composed("study=rank_chain", "law=halved", word)
    with pytest.raises(InputError, match="optimizer=halved is unknown: choose from adam"):
        composed("study=practical_layers", "optimizer=halved")
    with pytest.raises(InputError, match="its optimizers are SGD, and Adam"):
        composed("study=rank_collapse", "protocol=authors", "optimizer=halved")


def test_several_names_have_several_looks():
    register("law", "halved", halved)
    register("law", "doubled", doubled)
    assert own_look("law", "halved") != own_look("law", "doubled")
    assert own_look("law", "absent") == own_look("law", "absent"), "drawn from stored tables"


def test_a_broken_file_of_methods_breaks_nothing_else(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_methods").mkdir()
    (tmp_path / "broken_methods" / "methods.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ["--config-dir", "broken_methods", "study=rank_collapse", "scale=smoke", "--dry-run"]
    assert run_here(words, monkeypatch) == 0
    catalogue.forget()
    assert "methods.py cannot be imported (ZeroDivisionError" in capsys.readouterr().err


def test_a_name_that_is_typed_wrong_or_not_registered_is_hinted_at():
    words = "study=rank_collapse", "normalizations=[none,hlaved]"
    with pytest.raises(InputError, match=r"choose from .*\(a name of your own needs --config-dir"):
        composed(*words)
    register("normalization", "halved", halved)
    with pytest.raises(InputError, match="did you mean 'halved'"):
        composed(*words)
    with pytest.raises(InputError, match="drop .py, test_user_functions:halved"):
        composed("study=rank_collapse", "activation=test_user_functions.py:halved")


def test_a_stored_run_of_a_name_that_is_not_registered_says_where_names_come_from(
    tmp_path, monkeypatch, capsys
):
    register("normalization", "halved", halved)
    run = Run(composed("study=rank_collapse", "normalizations=[halved]")[1], tmp_path)
    run.folder.mkdir(parents=True)
    (run.folder / "config.yaml").write_bytes(run.config_text())
    assert read_config(run.folder) == run.config
    choices.REGISTERED.clear()
    with pytest.raises(InputError, match="config.yaml: .*halved is unknown.*--config-dir"):
        read_config(run.folder)
    for action, code in (("list", 0), ("plot", 2), ("export", 2)):
        words = ["runs", action, "--where", "study=rank_collapse", f"outputs={tmp_path}"]
        assert run_here(words, monkeypatch) == code
        assert "unknown here are in 1 of 1 run: a name of your own" in capsys.readouterr().err
    assert run_here(["runs", "show", run.folder.name, f"outputs={tmp_path}"], monkeypatch) == 2
    assert "halved is unknown: choose from" in capsys.readouterr().err
