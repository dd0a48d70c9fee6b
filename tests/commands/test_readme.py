"""Every command of the README runs, as it is typed there, at scale smoke."""

import re
import shlex

import pytest
from in_process import check_only
from in_process import run as run_here
from repository import REPOSITORY

from runner.core import catalogue

COMMANDS = [
    line
    for line in (REPOSITORY / "tests" / "readme_commands.txt").read_text().splitlines()
    if not line.startswith("#")
]

SMALL = {
    "study=rank_collapse": ["train=false", "samples=16"],
    "study=bn_only": ["train_samples=2000", "test_samples=200", "replicates=2"],
    "experiment=deep": ["train=false"],
}
"""What makes a command a matter of seconds, beside its scale."""

EXPERIMENT = "# @package _global_\ndefaults:\n  - override /study: rank_collapse\ndepth: 64\n"


def test_the_list_has_every_command_of_the_readme():
    """But for those of make, of the installation and of a cluster's queue."""
    readme = (REPOSITORY / "README.md").read_text()
    shown = re.findall(
        r"^(?:python -m )?(runner (?!figure=fig4 +# from).*?)(?: *#.*)?$", readme, re.M
    )
    listed = {" ".join(line.split()).replace(" scale=smoke", "") for line in COMMANDS}
    for command in shown:
        words = re.sub(r"\b(1a2b3c4d)\b", "FIRST", command.replace(" scale=smoke", ""))
        assert words.replace("5e6f7a8b", "LAST").strip() in listed, command


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to run in; studies that are made known in it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    yield tmp_path
    catalogue.forget()


@pytest.mark.long
@pytest.mark.parametrize("runs", ["one of a kind", pytest.param("all", marks=pytest.mark.more)])
def test_every_command_of_the_readme_runs(runs, place, monkeypatch, capsys):
    """Of several that compute the same kind of thing, one computes; the others are checked."""
    (place / "mine" / "experiment").mkdir(parents=True)
    (place / "mine" / "experiment" / "deep.yaml").write_text(EXPERIMENT)
    computed: set[str] = set()
    for line in COMMANDS:
        if "FIRST" in line:
            hashes = [path.name[-8:] for path in sorted(place.glob("outputs/runs/bn_only/*"))]
            line = line.replace("FIRST", hashes[0]).replace("LAST", hashes[-1])
        _, *words = shlex.split(line)
        computes = any("=" in word for word in words) and not {"--where", "-sc"} & set(words)
        more = [each for key in words for each in SMALL.get(key, [])]
        if computes or words[0] == "figures":
            at = words.index("--cfg") if "--cfg" in words else len(words)
            words[at:at] = ["scale=smoke", "device=cpu", *more]
        elif words[0] in ("report", "compare", "claims"):
            words += ["scale=smoke"]
        expected = 1 if words[:2] == ["runs", "diff"] else 0  # they differ
        kind = words[0].partition("=")[0]
        with monkeypatch.context() as patches:
            is_once_more = computes and kind in computed and runs != "all"
            code = (check_only if is_once_more else run_here)(words, patches)
        computed |= {kind} if computes else set()
        shown = capsys.readouterr()
        assert code == expected, (line, shown.err)
        assert "Traceback" not in shown.err, line
