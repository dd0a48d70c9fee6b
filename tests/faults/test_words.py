"""Words and YAML files that are wrong: what is wrong, where, and what to type."""

import in_process
import pytest

COMMANDS = [
    (["study=example20", "depths=8"], "depths=[8]"),
    (["-m", "study=example20", "exponents=.6,.7"], "exponents must be a list: exponents=[0.6]"),
    (["study=example20", "depths=[[8,16]]"], "depths=[8,16]"),
    (["study=example20", "~seed"], "~seed: no key is taken away"),
    (["study=example20", "--seed=1"], "keys have no dashes: seed=1"),
    (["study=example20", "seed:1"], "seed:1 cannot be read: key=value is needed"),
    (["study=example20", "seed=1,"], "a value is missing behind the comma, as in seed=1"),
    (["study=example20", "depths[0]=8"], "as in depths=[8]"),
    (["figure=fig4", "study=rank_chain"], "figure=fig4 is of study bn_only"),
    (["runs", "list", "example20"], "--study example20"),
    (["runs", "diff", "1", "2", "outputs=nowhere"], "there are no runs under nowhere"),
    (["-m", "study=example20", "exponents=range(0,1e9)"], "1,000,000,000 runs"),
    (["-m", "study=example20", "seed=range(0,inf)"], "infinitely many runs"),
    (["-m", "study=example20", "exponents=range(0,1,nan)"], "range(0,1,nan): nan is no number"),
    (["-m", "study=example20", "seed=range(nan,3)"], "range(nan,3): nan is no number"),
    (["study=example20", "source=${now:%S}"], "source must be a mapping"),
    (["study=example20", "depths=${seed}"], "depths must be a list"),
    (["figure=fig4", "grids=3"], "grids"),
    (["figure=fig4", "grids.smoke=3", "scale=smoke"], "grids"),
]


@pytest.mark.parametrize(("words", "said"), COMMANDS)
def test_what_is_typed_wrong_is_said_with_what_to_type(words, said, monkeypatch, capsys):
    assert in_process.check_only(words, monkeypatch) == 2
    assert said in capsys.readouterr().err


FILES = [
    (b"# @package _global_\nseed: 1\n# caf\xe9\n", "line 3: it is not in UTF-8"),
    (b"# mine\n# @package _global_\nseed: 1\n", "must be its first line"),
    (b"# @package _global_\nseed: 1\nseed: 2\n", "line 3: seed is there twice, also in line 2"),
    (b"# @package _global_\nseed: 010\n", "line 2: seed: 010 is 8 in YAML"),
    (b"# @package _global_\nseed: 1:30\n", "line 2: seed: 1:30 is 90 in YAML"),
    (b"# @package _global_\nscale: paper\ndepths: [8]\n", "- override /scale: paper"),
    (b"# @package _global_\nfigure: bottleneck-example20\n", "- override /figure: bottleneck"),
    (b"# @package _global_\nseed: [\n", "line"),
]


@pytest.mark.parametrize(("content", "said"), FILES)
def test_a_file_that_is_wrong_is_named_with_what_to_write(
    content, said, monkeypatch, capsys, tmp_path
):
    from runner.core import catalogue

    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_bytes(content)
    monkeypatch.setattr("runner.compose.checking.own_conf_folders", lambda: [tmp_path / "mine"])
    assert catalogue.CONF.is_dir()
    words = ["study=example20", "experiment=small"]
    assert in_process.check_only(words, monkeypatch) == 2
    errors = capsys.readouterr().err
    assert said in errors and "experiment/small.yaml" in errors


def test_hydras_own_flags_take_whole_numbers_as_a_run_does(monkeypatch, capsys):
    assert in_process.check_only(["study=example20", "seed=1e1", "--cfg", "job"], monkeypatch) == 0
    assert "seed: 10\n" in capsys.readouterr().out
