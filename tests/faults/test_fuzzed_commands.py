"""Random commands from a grammar: each ends in a message, never in a traceback, and soon.

`make test` tries thirty, `make test-more` three hundred, or as many as COMMANDS says.
"""

import logging
import os
import random
import signal

import in_process
import pytest

from runner.commands import runs
from runner.core.catalogue import configs, figure_names
from runner.core.settings import Settings

COMMANDS = int(os.environ.get("COMMANDS", "300"))
SECONDS = 15
"""Longest time of one command."""

STUDIES, FIGURES = sorted(configs()), figure_names()
SAFE = {"outputs"}
"""The key whose values may name a folder elsewhere."""
KEYS = {
    study: sorted({*config.__dataclass_fields__, *Settings.__dataclass_fields__} - SAFE)
    for study, config in configs().items()
}
VALUES = [
    "1", "0", "-1", "1e3", "1e999", ".5", "nan", "inf", "null", "true", "x", "", "''", '"a b"',
    "[]", "[8]", "[[8,16]]", "[a,b]", "{a:1}", "[{a:1}]", "8,16", "[8],[16]", "range(1,4)",
    "range(0,1e9)", "range(1,4,0)", "choice(1,2)", "choice()", "glob(*)", "interval(0,1)",
    "sort(3,1)", "${seed}", "${nothing}", "${now:%S}", "\0", "é", "1:30", "010", "1_000",
    "99999999999999999999", "[1", "a=b", "mine:f", "(", "~", "[null]", "[nan]", "1,,2", "'", "\\",
]  # fmt: skip
WORDS = [
    "seed:1", "=1", "seed", "~seed", "~x", "+x=1", "++x=1", "--seed=1", "-x", "seed@a=1",
    "depths[0]=8", "hydra.verbose=1", "hydra/launcher=joblib", "grids=3", "grids.smoke=[3]",
    "a.b=1", "size=3", "schema=3", "experiment=x", "source=3", "hydra/sweeper=basic",
]  # fmt: skip
ENDS = [[]] * 9 + [
    ["-m"], ["--cfg", "job"], ["--cfg=all", "--resolve"], ["--package", "x", "--cfg", "job"],
    ["--info=all"], ["-i=all"], ["--info=x"], ["--help"], ["--help", "all"], ["--columns"],
    ["--config-dir", "x"], ["--config-name", "x"], ["-sc", "query=bash"], ["--redraw"],
]  # fmt: skip
ACTIONS = {name: parser._actions[1:] for name, parser in runs._parsers()[1].items()}
"""The arguments of each action of `runner runs`, without its help."""
OPTIONS = [["1"], ["outputs="], ["bn_only"], ["--help"], ["-x"], ["x.csv"], ["outputs=x"]]
ASKED = [
    "x", "", "complete", "dead", "depth==8", "width > 1", "=", "seed=", "depth", "test_mse",
    "metrics", "bn_only", "example20", "test_mse,width", "a.png", "a.txt", "1", "-1", "\0", "é",
    "__import__('os')", "seconds.x", "@a", "method", "seed in [0]", "a" * 300,
]  # fmt: skip
"""Values of the options of `runner runs`."""
OTHERS = [
    ["show"], ["claims"], ["figures"], ["figures", "--dry-run"], ["figures", "-m"],
    ["figures", "--redraw"], ["compare"], ["new"], ["new", "study"], ["fig4"], ["x"],
    ["report", "x"], ["--version"],
]  # fmt: skip
MORE = [
    "fig44", "scale=smoke", "scale=x", "seed=x", "--help", "-x", "", "=", "x=1", "~a", "style=x",
    "size=1", "size=0x9", "series=[", "where=q", "header=x", "out=a.doc", "scale=medium", "é",
    "outputs=x", "--package", "fig5", "conserved", "bottleneck-example20", "rank-vgg",
]  # fmt: skip


def computing(draw: random.Random) -> list[str]:
    """Return a command that computes a study or a figure."""
    study = draw.choice(STUDIES)
    first = draw.choice([f"study={study}"] * 6 + [f"figure={draw.choice(FIGURES)}", "figure="])
    words = [first, draw.choice(["scale=smoke", "scale=x", "scale=paper"])]
    for _ in range(draw.randrange(4)):
        pair = f"{draw.choice(KEYS[study])}={draw.choice(VALUES)}"
        words.append(pair if draw.random() < 0.85 else draw.choice(WORDS))
    return words + draw.choice(ENDS)


def on_runs(draw: random.Random) -> list[str]:
    """Return a command about stored runs."""
    action = draw.choice([*ACTIONS, "x", "--json"])
    known = ACTIONS.get(action) or ACTIONS[draw.choice([*ACTIONS])]
    words = ["runs", action]
    for _ in range(draw.randrange(4)):
        option = draw.choice(known)
        is_known = option.option_strings and draw.random() < 0.8
        words += [draw.choice(option.option_strings)] if is_known else draw.choice(OPTIONS)
        if is_known and option.nargs != 0:
            words.append(draw.choice(ASKED))
    return words


def other(draw: random.Random) -> list[str]:
    """Return another subcommand with wrong arguments."""
    return draw.choice(OTHERS) + draw.sample(MORE, draw.randint(1, 2))


def too_slow(*_):
    raise TimeoutError(f"longer than {SECONDS} s")


@pytest.mark.parametrize("commands", [30, pytest.param(COMMANDS, marks=pytest.mark.more)])
def test_no_command_ends_in_a_traceback(commands, monkeypatch, capsys, outputs):
    monkeypatch.chdir(outputs.parent)
    draw = random.Random(int(os.environ.get("SEED", "0")))
    before, wrong = signal.signal(signal.SIGALRM, too_slow), []
    for _ in range(commands):
        words = draw.choice([computing] * 6 + [on_runs] * 3 + [other])(draw)
        signal.alarm(SECONDS)
        monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)  # an --info before
        try:
            code = in_process.check_only(words, monkeypatch)
        except BaseException as error:
            wrong.append(f"{words}: {type(error).__name__}: {error}")
            continue
        finally:
            signal.alarm(0)
        shown = capsys.readouterr()
        is_silent = code == 2 and not shown.err.strip()
        if code not in (0, 1, 2) or "Traceback" in shown.err + shown.out or is_silent:
            wrong.append(f"{words}: exit code {code}: {shown.err[-300:]}")
    signal.signal(signal.SIGALRM, before)
    assert not wrong, f"{len(wrong)} of {commands}:\n" + "\n".join(wrong)
