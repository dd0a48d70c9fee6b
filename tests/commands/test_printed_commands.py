"""Every command that the program prints can be pasted into a shell, and is carried out."""

import contextlib
import os
import re
import shlex
import sys

import numpy as np
import pytest
from in_process import run as run_here
from samples import samples

from runner.core import catalogue
from runner.core.choices import REGISTERED
from runner.core.shell import command, typed
from runner.core.user_functions import NAMED

LION = '''\
import torch

import runner
from runner.training.optimizers import Optimizer


@runner.register("optimizer", "of_the_signs")
class OfTheSigns(Optimizer):
    """Steps along the sign of the gradient."""

    def step(self, gradients, rates):
        for name, g in gradients.items():
            self.parameters[name].sub_(rates.view(-1, *[1] * (g.dim() - 1)) * g.sign())
'''

BROKEN = """\
def fails(network):
    raise ArithmeticError("on purpose")
"""

BN = ("study=bn_only", "scale=smoke", "replicates=2", "train_samples=320", "test_samples=64")
RANK = ("study=rank_collapse", "scale=smoke", "train=false", "width=8", "samples=16")

KINDS = {
    "plain run": (*BN, "target_width=2"),
    "sweep": ("-m", *RANK, "depth=2,3", "init=pytorch"),
    "sweep beside others": ("-m", *RANK, "depth=2,3", "init=he,pytorch"),
    "figure": ("figure=bottleneck-example20", "scale=smoke"),
    "changed figure": ("figure=rank-lemma7", "scale=smoke", "seed=7", "draws=20"),
    "own images and outputs": ("-m", "study=rank_collapse", "scale=smoke", "train=false",
                               "depth=2,3", "data=my images/two kinds.npz",
                               "outputs=my results/of 'today'"),
    "registered method": ("--config-dir", "my folder/my_methods", "-m", *BN,
                          "optimizer=sgd,of_the_signs"),
    "failed run": ("-m", *BN, "measure=own_measure:fails,null"),
    "dry run": ("figure=rank-lemma7", "scale=smoke", "--dry-run"),
}  # fmt: skip
"""A command of each kind, whose printed commands are carried out."""

CONTAINED = {"plain run": None, "sweep": None, "figure": None}
"""Kinds that another one contains: `make test-more` has them."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of a user, with blanks in names, and modules and images of their own."""
    (tmp_path / "my folder" / "my_methods").mkdir(parents=True)
    (tmp_path / "my folder" / "my_methods" / "methods.py").write_text(LION)
    (tmp_path / "own_measure.py").write_text(BROKEN)
    (tmp_path / "my images").mkdir()
    pixels = np.random.default_rng(0).random((100, 3, 3))
    np.savez(tmp_path / "my images" / "two kinds.npz", images=pixels, labels=np.arange(100) % 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget_the_users_code()


def forget_the_users_code() -> None:
    """Bring the process into the state of a new one, which knows no folder of `--config-dir`."""
    os.environ.pop(catalogue.FOLDERS, None)
    os.environ.pop(NAMED, None)
    REGISTERED.clear()
    catalogue.forget()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("my_methods",)]:
        del sys.modules[name]
    with contextlib.suppress(ValueError):
        sys.path.remove(str(catalogue.Path.cwd() / "my folder"))


@pytest.fixture
def say(monkeypatch, capsys):
    """Carries out a command as in a new process; returns its exit code, stdout and stderr."""

    def carry_out(words):
        forget_the_users_code()
        code = run_here(list(words), monkeypatch)
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        return code, shown.out, shown.err

    return carry_out


def commands_in(text: str) -> list[str]:
    """The commands in a printed text: what follows `runner ` at the end of a line."""
    return re.findall(r"(?:^|[:(] *|  )(runner .*)$", text, re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize("kind", samples(KINDS, lambda kind: CONTAINED.get(kind, kind)))
def test_what_is_printed_can_be_typed(kind, here, say):
    words = KINDS[kind]
    if kind == "sweep beside others":
        say(["-m", *RANK, "depth=4", "init=he,pytorch"])
    code, out, err = say(words)
    assert code == (kind == "failed run"), err
    outputs = [word for word in words if word.startswith("outputs=")]
    folders = list(words[:2]) if words[0] == "--config-dir" else []
    for path in sorted(here.glob("**/runs/*/*/config.yaml"))[:1]:
        code, shown, _ = say([*folders, "runs", "show", path.parent.name[-8:], *outputs])
        assert code == 0 and "with a change: runner " in shown
        out += shown
    printed = commands_in(out + err)
    assert printed or kind == "dry run", out
    for text in printed:
        assert "'\"'\"'" not in text and " in ['" not in text, "readable"
        if outputs and " runs " in text:
            assert outputs[0] in shlex.split(text)
        words = [word for word in shlex.split(text)[1:] if word != "KEY=VALUE"]
        code, _, err = say(words)
        may_fail = " diff " in text or " compare " in text or kind == "failed run"
        assert code == 0 or code == 1 and may_fail, (text, err)


def test_a_stale_run_is_listed_and_computed_again_by_what_is_printed(here, say):
    say(KINDS["registered method"])
    path = here / "my folder" / "my_methods" / "methods.py"
    path.write_text(path.read_text().replace("* g.sign()", "* 2 * g.sign()"))
    code, out, err = say(KINDS["registered method"])
    assert code == 0 and "stale=recompute computes again" in err
    for text in commands_in(out):
        assert say(shlex.split(text)[1:])[0] in (0, 1)
    assert "by other code" in say(shlex.split(commands_in(out)[0])[1:])[1]
    code, _, err = say([*KINDS["registered method"], "stale=recompute"])
    assert code == 0 and "2 runs, 1 of them complete" in err


def test_a_run_with_an_own_method_is_not_damaged_and_stops_no_export(here, say):
    say(KINDS["registered method"])
    code, out, err = say(["runs", "check"])
    assert code == 0 and "2 runs, 0 damaged, 1 not checked" in out
    assert "optimizer=of_the_signs is unknown" in out and "needs --config-dir FOLDER" in out
    for words in (["export", "--study", "bn_only"], ["export", "--study", "bn_only", "--summary"]):
        code, out, err = say(["runs", *words])
        assert code == 0 and "sgd" in out + err and "left out: " in err
        assert "of_the_signs" not in out and "needs --config-dir FOLDER" in err


def test_a_run_is_shown_by_the_folder_that_is_printed(here, say):
    out = say(KINDS["plain run"])[1]
    (folder,) = re.findall(r"^(outputs/runs/.*): overview.png", out, re.MULTILINE)
    assert "=" in folder
    for name in (folder, str(here / folder), here.joinpath(folder).name):
        assert say(["runs", "show", name])[0] == 0
    assert say(["runs", "show", "outputs=elsewhere", folder])[0] == 0


def test_one_value_is_printed_without_brackets(here, say):
    say(KINDS["sweep"])
    out = say(["-m", *RANK, "depth=2,3", "init=he"])[1]
    assert "runner runs plot --study rank_collapse --where init=he\n" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["outputs=my results"], "'outputs=my results'"),
        (["--where", "init in ['a']"], "--where \"init in ['a']\""),
        (["data='x y'"], "\"data='x y'\""),
        (["a=$HOME 'b'"], "'a=$HOME '\"'\"'b'\"'\"''"),
        (["widths=[2,3]", "γ=1"], "'widths=[2,3]' 'γ=1'"),
    ],
)
def test_words_are_quoted_as_a_person_would(words, text):
    assert typed(words) == text and shlex.split(text) == words


def test_a_command_names_the_folders_that_it_needs(here, monkeypatch):
    folder = here / "my folder" / "my_methods"
    catalogue.add_studies(folder)
    assert command("runs", "list") == "runner --config-dir 'my folder/my_methods' runs list"
    monkeypatch.chdir(here / "my folder")
    assert (
        command("show", outputs=here / "x")
        == f"runner --config-dir my_methods show outputs={here}/x"
    )
