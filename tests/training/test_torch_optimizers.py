"""Optimizers of torch, named as `torch.optim:AdamW`, in studies that take an optimizer."""

import os

import pytest
import torch
from in_process import run as run_here
from stopped import bytes_of, compute_with_stops
from tiny import tiny

from runner.core.choices import REGISTERED
from runner.core.errors import InputError
from runner.core.torch_optimizers import KNOWN, PREFIX
from runner.core.user_functions import NAMED, register, register_as_parent
from runner.runs.inventory import find
from runner.runs.run import Run, functions_of
from runner.training.optimizers import SGD, Optimizer, optimizer_of

RATES = torch.tensor([0.1, 0.02, 0.003], dtype=torch.float64)


class Own(Optimizer):
    """One of the user's own."""

    step = SGD.step


@pytest.mark.parametrize("name", KNOWN)
def test_each_network_steps_as_with_torchs_own_at_its_own_rate(name):
    tiny("rank_collapse", optimizer=PREFIX + name)  # registers it
    generator = torch.Generator().manual_seed(0)
    stack = {
        key: torch.randn(shape, generator=generator, dtype=torch.float64)
        for key, shape in {"a": (3, 4), "b.c": (3, 2, 5)}.items()
    }
    alone = [{key: value[r].clone() for key, value in stack.items()} for r in range(3)]
    theirs = [
        getattr(torch.optim, name)([*p.values()], lr=float(rate))
        for p, rate in zip(alone, RATES, strict=True)
    ]
    optimizer = optimizer_of(PREFIX + name, stack)
    for step in range(9):
        if step == 4:  # as after an interruption
            stored = {key: value.clone() for key, value in optimizer.stored().items()}
            optimizer = optimizer_of(PREFIX + name, stack)
            optimizer.restore(stored)
        optimizer.step({key: value**3 + 1 for key, value in stack.items()}, RATES)
        for parameters, other in zip(alone, theirs, strict=True):
            for value in parameters.values():
                value.grad = value**3 + 1
            other.step()
    for key, value in stack.items():
        torch.testing.assert_close(value, torch.stack([p[key] for p in alone]))


@pytest.mark.parametrize("name", ["LBFGS", "Rprop", "ASGD", "Adafactor", "Optimizer", "", "adamw"])
def test_others_are_refused_by_name(name):
    with pytest.raises(
        InputError, match=f"optimizer={PREFIX}{name}: its steps are not elementwise"
    ):
        tiny("rank_collapse", optimizer=PREFIX + name)


def test_all_that_torch_has_are_known_or_refused():
    """A new optimizer of torch must be looked at: is its step proportional to the rate?"""
    refused = {"ASGD", "Adafactor", "LBFGS", "Muon", "Optimizer", "Rprop", "SparseAdam"}
    theirs = {name for name, value in vars(torch.optim).items() if isinstance(value, type)}
    assert theirs <= refused | {*KNOWN}


def test_a_run_is_resumed_found_and_fingerprinted(tmp_path, monkeypatch, capsys):
    runs = [Run(tiny("rank_collapse", optimizer=PREFIX + "AdamW", epochs=2), tmp_path / name)
            for name in ("a", "b")]  # fmt: skip
    compute_with_stops(runs[0], [], monkeypatch)
    compute_with_stops(runs[1], [1, 3], monkeypatch)
    assert bytes_of(runs[0]) == bytes_of(runs[1])
    assert runs[0].code() != Run(tiny("rank_collapse"), tmp_path).code()
    REGISTERED.clear()  # as in another process
    (info,) = find(tmp_path / "a")
    assert info.code == "today's" and info.config == runs[0].config
    words = ["study=bn_only", "scale=smoke", f"optimizer={PREFIX}Rprop", f"outputs={tmp_path}"]
    assert run_here(words, monkeypatch) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_the_names_for_other_processes_are_only_the_users(monkeypatch):
    config = tiny("low_rank_training", optimizer=PREFIX + "RMSprop")
    assert functions_of(config) == ("runner.core.torch_optimizers:RMSprop",)
    register("optimizer", "own_one", Own)
    assert PREFIX not in os.environ[NAMED]
    REGISTERED.clear()
    register_as_parent()
    assert set(REGISTERED["optimizer"]) == {"own_one"}
