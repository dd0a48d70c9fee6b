"""Commands that a grammar makes up: each ends in a message, never in a traceback, and soon.

A hundred in every test; `COMMANDS=1000 pytest tests/faults/test_fuzzed_commands.py` tries more.
"""

import os
import random
import signal
import time
from contextlib import contextmanager

import in_process
import pytest

from runner.core.catalogue import configs, figure_names
from runner.core.settings import Settings

COMMANDS = int(os.environ.get("COMMANDS", "100"))
SECONDS = 15
"""Of one command, after which it hangs."""

ALL_AT_ONCE = 24
"""Seconds of the hundred: what is left is tried by more time alone."""

STUDIES, FIGURES = sorted(configs()), figure_names()
KEYS = {
    study: [*config.__dataclass_fields__, *Settings.__dataclass_fields__]
    for study, config in configs().items()
}
SAFE = {"outputs", "data_folder", "tracker"}
"""Keys whose values would write somewhere."""

VALUES = [
    "1", "0", "-1", "8", "1e3", "1e999", "0.5", ".5", "nan", "inf", "-inf", "null", "true", "x",
    "", "''", '"a b"', "[]", "[8]", "[8,16]", "[[8,16]]", "[a,b]", "{a:1}", "{}", "[{a:1}]", "8,16",
    "[8],[16]", "range(1,4)", "range(0,1e9)", "range(1,4,0)", "choice(1,2)", "choice()", "glob(*)",
    "interval(0,1)", "shuffle(1,2,3)", "sort(3,1)", "${seed}", "${nothing}", "${now:%S}", "\0",
    "é", "8+16", "1:30", "010", "0x10", "1_000", "99999999999999999999", "[1", "a=b", "mine:f",
    "{", "(", "~", "[null]", "[nan]", "[true]", "true,false", "1,,2", "a,b,", "*", "'", "\\",
]  # fmt: skip
WORDS = ["seed:1", "=1", "seed", "~seed", "~x", "+x=1", "++x=1", "--seed=1", "-x", "seed@a=1",
         "depths[0]=8", "hydra.verbose=1", "hydra/launcher=joblib", "grids=3", "grids.smoke=[3]",
         "a.b=1", "size=3", "schema=3", "experiment=x", "source=3",
         "hydra/sweeper=basic"]  # fmt: skip


class Grammar:
    """Makes commands up."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.one = self.random.choice

    def command(self) -> list[str]:
        """One of those that compute, or that look at runs, at the reference, at help."""
        makers = [self.compute] * 6 + [self.runs] * 3 + [self.other]
        words = self.one(makers)()
        if self.random.random() < 0.1:
            self.random.shuffle(words)
        return words

    def compute(self) -> list[str]:
        study = self.one(STUDIES)
        first = self.one([f"study={study}"] * 6 + [f"figure={self.one(FIGURES)}", "figure=", "-m"])
        words = [first, *self.one([[], ["scale=smoke"], ["scale=x"], ["scale=paper"]])]
        for _ in range(self.random.randrange(4)):
            key = self.one([key for key in KEYS[study] if key not in SAFE])
            words.append(f"{key}={self.one(VALUES)}" if self.random.random() < 0.85 else
                         self.one(WORDS))  # fmt: skip
        return words + self.one([[]] * 6 + [["-m"], ["--cfg", "job"], ["--help"], ["--columns"]])

    def runs(self) -> list[str]:
        action = self.one(["list", "check", "diff", "export", "plot", "clean", "x", "--json"])
        words = ["runs", action]
        options = {
            "--study": [*STUDIES, "x", ""],
            "--status": ["complete", "x"],
            "--where": [f"{self.one(KEYS[self.one(STUDIES)])}=={self.one(VALUES)}", "x", "="],
            "--table": ["metrics", "x"], "--x": ["depth", "epoch", "x"], "--y": ["x", "test_mse"],
            "--stale": [None], "--csv": [None], "--latex": [None], "--mean": [None],
        }  # fmt: skip
        for _ in range(self.random.randrange(4)):
            name = self.one([*options, *STUDIES[:2], "1", "outputs=", "depth=8"])
            words.append(name)
            value = self.one(options.get(name, [None]))
            words += [] if value is None else [value]
        return words

    def other(self) -> list[str]:
        words = self.one([["show"], ["claims"], ["figures"], ["compare"], ["new"], ["fig4"], ["x"],
                          ["reference"], ["reference", "draw"], ["report", "x"]])  # fmt: skip
        more = ["fig44", "scale=smoke", "scale=x", "seed=x", "--help", "-x", "", "=", "x=1", "~a"]
        return [*words, *(self.one(more) for _ in range(1 + self.random.randrange(2)))]


@contextmanager
def limited(seconds: int):
    """Raises TimeoutError after so many seconds."""

    def end(*_):
        raise TimeoutError(f"it takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_no_command_ends_in_a_traceback(monkeypatch, capsys, tmp_path, outputs):
    monkeypatch.chdir(outputs.parent)
    grammar, begun, tried = Grammar(int(os.environ.get("SEED", "0"))), time.monotonic(), 0
    wrong = []
    while tried < COMMANDS and (COMMANDS > 100 or time.monotonic() - begun < ALL_AT_ONCE):
        words, tried = grammar.command(), tried + 1
        try:
            with limited(SECONDS):
                code = in_process.check_only(words, monkeypatch)
        except BaseException as error:
            wrong.append(f"{words}: {type(error).__name__}: {error}")
            continue
        said = capsys.readouterr()
        if code not in (0, 1, 2) or "Traceback" in said.err + said.out:
            wrong.append(f"{words}: exit code {code}: {said.err[-300:]}")
        elif code == 2 and not said.err.strip():
            wrong.append(f"{words}: wrong, and nothing is said")
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong)
    assert tried >= 10


@pytest.mark.parametrize("seed", [0, 1])
def test_the_grammar_makes_the_same_commands_of_a_seed(seed):
    one, other = Grammar(seed), Grammar(seed)
    assert [one.command() for _ in range(9)] == [other.command() for _ in range(9)]
