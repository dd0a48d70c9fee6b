"""Methods of users: what they draw, what they return, and what an interruption would lose."""

import inspect
import random

import numpy as np
import own_methods as mine
import pytest
import torch
from stopped import compute_with_stops

from runner.core import choices
from runner.core.errors import InputError, RunFailed
from runner.core.settings import Settings
from runner.core.user_functions import register
from runner.networks import own_calls
from runner.networks.activations import activation_of
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.results.reported import report
from runner.runs.execution import execute
from runner.runs.run import Run
from runner.training.optimizers import Momentum, optimizer_of

OWN = {
    "normalization": {"noisy": mine.noisy},
    "activation": {"jitter": mine.jitter},
    "init": {"global_init": mine.global_init},
    "law": {"global_law": mine.global_law},
    "optimizer": {"counted": mine.Counted},
}


@pytest.fixture(autouse=True)
def registered():
    choices.REGISTERED.clear()
    choices.REGISTERED.update({kind: {**own} for kind, own in OWN.items()})


SMALL = {"width": 6, "replicates": 2, "epochs": 3}
CONFIGS = {
    "collapse": lambda: RankCollapse(
        **SMALL, depth=2, samples=4, batch_size=256, normalizations=["batch", "noisy"],
        activation="jitter", init="global_init", optimizer="counted", learning_rates=[0.01],
        measure="own_methods:spread",
    ),
    "bn_only": lambda: BnOnly(
        target_width=4, widths=[3], methods=["sgd"], replicates=2, train_samples=96, batch_size=4,
        test_samples=8, optimizer="counted",
    ),
    "low_rank": lambda: LowRankTraining(
        samples=20, optimizer="counted", **SMALL | {"epochs": 8}
    ),
    "chain": lambda: RankChain(
        widths=[4], skips=[1.0], layers=60, chains=3, burn_in=10, stride=5,
        law="global_law", engine="direct",
    ),
}  # fmt: skip


def tables(run):
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


@pytest.mark.parametrize("study", CONFIGS)
def test_random_numbers_of_own_methods_are_those_of_the_seed(study, tmp_path):
    config, found = CONFIGS[study](), []
    for turn in range(2):
        torch.manual_seed(turn), np.random.seed(turn), random.seed(turn)
        before = torch.rand(3), np.random.rand(3)
        torch.manual_seed(turn), np.random.seed(turn), random.seed(turn)
        run = Run(config, tmp_path / str(turn))
        execute(run, Settings(outputs=str(tmp_path / str(turn)), device="cpu"))
        found.append(tables(run))
        assert torch.equal(torch.rand(3), before[0]), "the caller's generators go on"
        assert (np.random.rand(3) == before[1]).all()
    assert found[0] and found[0] == found[1]
    other = Run(type(config)(**{**vars(config), "seed": 1}), tmp_path)
    execute(other, Settings(outputs=str(tmp_path), device="cpu"))
    assert tables(other) != found[0]


@pytest.mark.parametrize("study", ["collapse", "bn_only", "low_rank"])
def test_an_interruption_loses_neither_random_numbers_nor_the_optimizers_state(
    study, tmp_path, monkeypatch
):
    whole, stopped = (Run(CONFIGS[study](), tmp_path / name) for name in ("whole", "stopped"))
    execute(whole, Settings(outputs=str(tmp_path / "whole"), device="cpu"))
    compute_with_stops(stopped, [1, 3, 4], monkeypatch)
    assert tables(whole) == tables(stopped)


def test_the_generators_have_their_states_again_after_a_run_and_after_a_call_outside():
    """Python's own one is not compared: while tests run, checks of types draw from it."""
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    with own_calls.run_of(3), own_calls.call_of("law", "mine"):
        torch.rand(3), np.random.rand(3)
    activation_of("jitter").function(torch.ones(2))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_layers_and_networks_have_different_random_weights(monkeypatch):
    streams = [torch.Generator().manual_seed(r) for r in range(2)]
    (first, second, last), _ = draw("global_init", [5, 5, 5, 5], streams)
    drawn = [first[0], first[1], second[0], second[1], last[0]]
    assert all(not torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])
    alone, _ = draw("global_init", [5, 5], [torch.Generator().manual_seed(1)])
    assert torch.equal(alone[0][0], first[1]), "a replicate alone draws the same"


Z = torch.randn(2, 4, 16)
WRONG = {
    "shape": (lambda Z: Z.mean(1, keepdim=True), r"returned \(2, 1, 16\), not \(2, 4, 16\)"),
    "dtype": (lambda Z: Z.double(), "returned torch.float64 on cpu, not torch.float32 on cpu"),
    "None": (lambda Z: None, r"returned None, not a tensor \(2, 4, 16\)"),
    "array": (lambda Z: Z.numpy(), "returned an object of type ndarray, not a tensor"),
    "arguments": (lambda Z, x: Z, r"is called with \(Z\), but its signature is <lambda>\(Z, x\)"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_result_of_a_normalization_and_of_an_activation_is_checked(wrong, monkeypatch):
    function, said = WRONG[wrong]
    choices.REGISTERED["normalization"]["mine"] = choices.REGISTERED["activation"]["mine"] = (
        function
    )
    W, b = [torch.randn(2, 4, 4)] * 2, [torch.randn(2, 4)] * 2
    with pytest.raises(InputError, match=f"normalization=mine {said}"):
        MLP(W, b, normalization="mine").logits(Z.mT)
    with pytest.raises(InputError, match=f"activation=mine {said}"):
        activation_of("mine").function(Z.clone())


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ((torch.tensor(1.0), torch.zeros(3)), r"returned weights \(\), not \(3, 4\)"),
        ((torch.zeros(3, 4), torch.zeros(1)), r"returned biases \(1,\), not \(3,\)"),
        ((torch.zeros(3, 4),), "returned 1 values, not weights and biases"),
        (torch.zeros(3, 4), r"returned one tensor \(3, 4\), not weights"),
        (None, "returned None, not weights"),
        ((torch.zeros(3, 4), 0.0), r"an object of type float as biases, not a tensor \(3,\)"),
        ((torch.zeros(3, 4, dtype=torch.int64), torch.zeros(3)), "weights of torch.int64"),
    ],
)
def test_the_weights_of_an_init_are_checked(result, said):
    choices.REGISTERED["init"]["mine"] = lambda n_out, n_in, stream: result
    with pytest.raises(InputError, match=f"init=mine .*{said}"):
        draw("mine", [4, 3], [torch.Generator()])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda self: setattr(self, "t", self.t + 1), "changes self.t, which"),
        (lambda self: setattr(self, "new", 1), "changes self.new, which"),
        (lambda self: self.kept["m"][0].add_(1), "changes self.kept, which"),
        (lambda self: torch.rand((), generator=self.stream), "changes self.stream, which"),
        (lambda self: self.state.update(a=[1]), r"state\['a'\] is a list, not a tensor"),
        (lambda self: setattr(self, "state", 3), "state is a int, not a dictionary"),
        (lambda self: self.parameters.update(W=torch.ones(2, 3)), r"replaces parameters\['W'\]"),
    ],
)  # fmt: skip
def test_the_first_step_of_an_optimizer_is_checked(change, said):
    choices.REGISTERED["optimizer"]["mine"] = mine.steps(change)
    optimizer = optimizer_of("mine", {"W": torch.zeros(2, 3)})
    with pytest.raises(InputError, match=f"optimizer=mine.*{said}"):
        optimizer.step({"W": torch.ones(2, 3)}, torch.ones(2))


def test_what_a_later_step_changes_is_refused_before_it_is_lost():
    def change(self):
        self.state["n"] = self.state.get("n", 0) + 1
        if self.state["n"] == 3:
            self.t = 5

    choices.REGISTERED["optimizer"]["mine"] = mine.steps(change)
    optimizer = optimizer_of("mine", {"W": torch.zeros(2, 3)})
    for _ in range(2):
        optimizer.step({"W": torch.ones(2, 3)}, torch.ones(2))
    assert optimizer.stored()["number/n"] == 2
    optimizer.step({"W": torch.ones(2, 3)}, torch.ones(2))
    with pytest.raises(InputError, match="changes self.t"):
        optimizer.stored()


def test_a_measure_returns_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(mine, "spread", lambda tensors: {"a": [1]})
    run = Run(CONFIGS["collapse"](), tmp_path)
    with pytest.raises(InputError, match=r"measure=\S* returned \[1\] as a: a number"):
        execute(run, Settings(outputs=str(tmp_path), device="cpu"))


@pytest.mark.parametrize("init", ["pytorch", "gain"])
def test_the_message_of_a_failed_run_ends_with_the_line_of_the_users_code(init, tmp_path):
    choices.REGISTERED["activation"]["broken"] = mine.broken
    config = RankCollapse(**SMALL, depth=1, samples=4, activation="broken", init=init)
    with pytest.raises((RunFailed, InputError)) as caught:
        execute(Run(config, tmp_path), Settings(outputs=str(tmp_path), device="cpu"))
    (line,) = [n for n, text in enumerate(inspect.getsourcelines(mine)[0], 1) if "None +" in text]
    said = str(caught.value).splitlines()[0]
    assert "TypeError: unsupported operand" in said
    assert said.endswith(f"(own_methods.py, line {line}, in broken)")


def test_a_method_without_numbers_is_named_also_if_only_its_layers_are_measured(tmp_path):
    choices.REGISTERED["normalization"]["nan_norm"] = mine.nan_norm
    norms = {"normalizations": ["none", "nan_norm"], "train": False}
    run = Run(RankCollapse(width=6, depth=2, samples=4, replicates=2, **norms), tmp_path)
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    said = report(run)
    assert "\nnan_norm: all numbers in metrics are NaN or infinite at the end\n" in said
    assert "none: all" not in said and "plain: all" not in said


def test_torchs_global_state_changes_no_number(tmp_path):
    """A notebook may have set it, and has it again after the run."""
    choices.REGISTERED.clear()
    config = RankCollapse(**SMALL, depth=2, samples=4, batch_size=256, learning_rates=[0.01])
    usual, other = Run(config, tmp_path / "usual"), Run(config, tmp_path / "other")
    execute(usual, Settings(outputs=str(tmp_path / "usual"), device="cpu"))
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_float32_matmul_precision("medium")
        torch.use_deterministic_algorithms(True)
        with torch.inference_mode(), torch.autocast("cpu"), np.errstate(all="raise"):
            execute(other, Settings(outputs=str(tmp_path / "other"), device="cpu"))
            assert torch.is_inference_mode_enabled() and torch.is_autocast_enabled("cpu")
        found = torch.get_default_dtype(), str(torch.get_default_device())
        assert found == (torch.float64, "meta")
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_float32_matmul_precision("highest")
        torch.use_deterministic_algorithms(False)
    assert tables(usual) == tables(other)


def test_a_momentum_of_the_program_is_stored_as_before():
    momentum = Momentum({"W": torch.zeros(2, 3)})
    momentum.restore({"W": torch.ones(2, 3), "more": torch.ones(1)})
    assert (momentum.stored()["W"] == 1).all()


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (mine.noisy, "must be a class with hidden"),
        (mine.Forward, "must be a class with hidden"),
        (
            mine.Two,
            r"creates this class with \(channels, classes, norm, multiplier\), but its"
            r" signature is Two",
        ),
    ],
)
def test_a_class_that_is_no_architecture_is_refused_when_it_is_registered(network, said):
    with pytest.raises(InputError, match=f"^architecture=own_net.*{said}"):
        register("architecture", "own_net", network)
    assert "own_net" not in choices.REGISTERED.get("architecture", {})


HIDDEN = {
    "map": (lambda self, x: self.first(x), r"hidden\(x\) returned \(3, 4, 1, 1\), not \(3, 4\)"),
    "width": (lambda self, x: x.flatten(1), r"hidden\(x\) returned \(3, 2\), not \(3, 4\)"),
    "one sample": (
        lambda self, x: self.first(x).flatten(1)[:1],
        r"returned \(1, 4\), not \(3, 4\)",
    ),
    "None": (lambda self, x: None, "returned an object of type NoneType, not"),
    "array": (lambda self, x: np.zeros((3, 4)), "returned float64, not torch.float32"),
    "dtype": (lambda self, x: self.first(x).flatten(1).double(), "returned torch.float64, not"),
}


@pytest.mark.parametrize("wrong", HIDDEN)
def test_the_last_hidden_layer_of_an_architecture_is_checked(wrong):
    hidden, said = HIDDEN[wrong]
    network = mine.small_network(hidden)
    register("architecture", "own_net", network)
    register("architecture", "own_net", network)  # again, as a module that is imported twice
    with pytest.raises(InputError, match=f"^architecture=own_net: .*{said}"):
        network(2, 5, "none", 1.0)(torch.randn(3, 2, 1, 1))


def test_an_architecture_has_a_classifier_and_a_right_one_is_not_changed():
    network = mine.small_network(lambda self, x: self.first(x).flatten(1))
    x = torch.randn(3, 2, 1, 1)
    module = network(2, 5, "none", 1.0)
    before = module(x)
    register("architecture", "own_net", network)
    assert torch.equal(module(x), before)
    del module.classifier
    with pytest.raises(InputError, match=r"Small has no linear layer self\.classifier"):
        module.hidden(x)
