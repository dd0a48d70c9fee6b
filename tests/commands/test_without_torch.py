"""Commands that compute nothing import no torch, which takes two seconds."""

import json
import subprocess
import sys

import pytest
from in_process import run

RUN = ["study=example20", "scale=smoke"]
FIGURE = "bottleneck-example20"

COMMANDS = (
    ["study=example20", "--columns"],
    ["show", FIGURE],
    ["runs", "list"],
    ["runs", "show", "example20"],
    ["runs", "check"],
    ["runs", "export", "metrics"],
    ["runs", "plot", "--x", "depth"],
    ["runs", "clean"],
    ["claims", FIGURE],
    ["compare", FIGURE, "scale=smoke"],
    RUN,
    [f"figure={FIGURE}", "scale=smoke"],
)
"""Arguments of the commands, each after the one before in one process. The runs are complete."""

WITHOUT = """
import json, sys
from runner.__main__ import dispatch
for words in json.loads(sys.argv[1]):
    assert dispatch(words) == 0, words
    assert "torch" not in sys.modules, words
"""


@pytest.mark.long
def test_what_computes_nothing_imports_no_torch(tmp_path, monkeypatch):
    where = f"outputs={tmp_path}"
    assert run([f"figure={FIGURE}", "scale=smoke", where], monkeypatch) == 0
    commands = [[*words, where] for words in COMMANDS]
    code = [sys.executable, "-c", WITHOUT, json.dumps(commands)]
    done = subprocess.run(code, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
