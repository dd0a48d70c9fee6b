"""Malformed command lines and configurations: a short message, and the right exit code."""

import pytest
from in_process import check_only
from in_process import run as run_here

from runner.core import catalogue
from runner.core.settings import Settings

HYDRAS_FOLDERS = (
    "hydra.run.dir=x",
    "hydra.sweep.dir=x",
    "hydra.sweep.subdir=x",
    "hydra.job.chdir=true",
)

COMMANDS = [
    # names that do not exist
    (["study=bn_onyl"], "did you mean 'bn_only'"),
    (["study=xyz"], "study=xyz is unknown: choose from"),
    (["scale=quik"], "did you mean 'quick'"),
    (["figure=fig44"], "did you mean 'fig4'"),
    (["figure=fig4", "scale=papr"], "did you mean 'paper'"),
    (["figures", "scale=smok"], "did you mean 'smoke'"),
    (["figures", "fig4", "figure=fig5"], "figures are named here without a key: fig5"),
    (["reference", "judge", "scale=quick"], "it takes no words"),
    (
        ["study=rank_chain", "measure=spectrum", "engine=direct"],
        "engine=direct changes nothing with",
    ),
    (["hydra/launcher=jobib"], "did you mean 'joblib'"),
    # what Hydra can do, and is of no use here
    *(([word], "outputs=FOLDER moves them all") for word in HYDRAS_FOLDERS),
    (["-m", "study=example20", "seed=interval(1,3)"], "needs a list of values"),
    (["-m", "study=glob(zz*)"], "no values are given"),
    # words that are no key=value
    (["fig4"], "To see it: runner show fig4. To compute it: runner figure=fig4"),
    (["bn_only"], "To run it: runner study=bn_only"),
    (["fig44"], "fig44 is not a command, a figure or a study: did you mean 'fig4'?"),
    (["reference", "draw", "fig4"], "takes no name. To see one: runner show fig4"),
    # keys that do not exist
    (["memory_limit=1"], "All of them: runner study=bn_only --help"),
    (["depht=3"], "did you mean 'depth' of study="),
    (["target_widht=3"], "did you mean 'target_width'"),
    (["figure=fig4", "target_widht=3"], "did you mean 'target_width'"),
    (["+depht=3"], "depht"),
    (["target_width.x=3"], "target_width"),
    (["hydra.run=3"], "hydra.run"),
    # values of the wrong type
    (["target_width=abc"], "target_width: Value 'abc'"),
    (["target_width=null"], "target_width"),
    (["target_width=[1,2]"], "target_width: Value '[1, 2]'"),
    (["-m", "target_width=true,false"], "target_width: Value 'True'"),
    (["seed=1.5"], "seed: Value '1.5'"),
    (["force=maybe"], "force: Value 'maybe'"),
    # values outside their range
    (["target_width=0"], "target_width=0 must be at least 1"),
    (["-m", "target_width=5,-1"], "target_width=-1 must be at least 1"),
    (["figure=fig4", "target_width=0"], "target_width=0 must be at least 1"),
    (["widths=[0]"], "widths=0 must be at least 1"),
    (["sparsity=1.5"], "sparsity=1.5 must be above 0 and at most 1"),
    (["sparsity=0"], "sparsity=0.0 must be above 0"),
    (["sparsity=nan"], "sparsity=nan must be"),
    (["sparsity=-inf"], "sparsity=-inf must be"),
    (["replicates=0"], "replicates=0 must be at least 1"),
    (["learning_rate=0"], "learning_rate=0.0 must be above 0"),
    (["learning_rate=nan"], "learning_rate=nan must be"),
    (["threads=0"], "threads=0 must be at least 1"),
    (["checkpoint_seconds=-1"], "checkpoint_seconds=-1.0 must be at least 0"),
    (["methods=[]"], "methods=[] is empty"),
    (["methods=[sgd,dens]"], "did you mean 'dense'"),
    (["schedule=cosin"], "did you mean 'cosine'"),
    (["-m", "figure=fig4,fig5", "scale=smoke"], "several at once: runner figures"),
    # text that is no override
    (["target_width=["], "target_width=[ cannot be read: a bracket ] is missing"),
    (["target_width"], "target_width is a key: write target_width=value"),
    (["=3"], "=3: a key is missing"),
    (["study=null"], "Config group override"),
    (["study=bn_only,constructions"], "are a sweep: add -m"),
    (["+scale=smoke"], "scale"),
    (["++study=bn_only"], "force-add of config groups"),
    (["target_width@x=3"], "config group"),
    (["--nonsense"], "unrecognized arguments"),
    # extremes
    (["study=bottleneck", "ridge=1e155"], "ridge=1e+155 must be at least 0 and at most 1000000.0"),
    (["study=linear", "ridges=[0.1,inf]"], "ridges=inf must be above 0 and at most 1000000.0"),
    (["learning_rate=inf"], "learning_rate=inf must be above 0 and at most 1e+38"),
    (["threads=99999999999"], "threads=99999999999 must be at least 1 and at most 1024"),
    ([f"seed={10**399}"], "seed has 1326 bits: it must be at most 9223372036854775807"),
    (["study=rank_one", f"samples=[4,{10**399}]"], "samples has 1326 bits"),
    ([f"learning_rate={10**399}"], "int too large to convert to float"),
    ([f"study={'a' * 300}"], "is unknown: choose from"),
    ([f"{'a' * 300}=3"], "bn_only has no parameter aaa"),
    (["methods=[sgd,dense,sgd]"], "methods=[sgd,dense,sgd] holds sgd twice"),
    (["hydra.mode=FOO"], "expected one of [RUN, MULTIRUN]"),
    (["--config-name", "nonsense"], "Cannot find primary config 'nonsense'"),
    (["--config-dir=nowhere"], "nowhere: there is no such folder"),
    (["target_width=${seed}", "seed=-1"], "seed=-1 must be"),
    (["target_width=${target_width}"], "target_width"),
    (["outputs=${oc.env:NO_SUCH_VARIABLE}"], "NO_SUCH_VARIABLE"),
    (["target_width=\x00"], "target_width"),
    # lists, ranges, grids
    (["study=example20", "depths=8"], "depths=[8]"),
    (["-m", "study=example20", "exponents=.6,.7"], "exponents must be a list: exponents=[0.6]"),
    (["study=example20", "depths=[[8,16]]"], "depths=[8,16]"),
    (["study=example20", "~seed"], "~seed: no key can be removed"),
    (["study=example20", "--seed=1"], "keys have no dashes: seed=1"),
    (["study=example20", "seed:1"], "seed:1 cannot be read: key=value is needed"),
    (["study=example20", "seed=1,"], "a value is missing behind the comma, as in seed=1"),
    (["study=example20", "depths[0]=8"], "as in depths=[8]"),
    (["figure=fig4", "study=rank_chain"], "figure=fig4 is of study bn_only"),
    (["runs", "list", "example20"], "--study example20"),
    (["runs", "diff", "1", "2", "outputs=nowhere"], "there are no runs under nowhere"),
    (["-m", "study=example20", "exponents=range(0,1e9)"], "1,000,000,000 runs"),
    (["-m", "study=example20", "seed=range(0,inf)"], "inf runs"),
    (["-m", "study=example20", "exponents=range(0,1,nan)"], "range(0,1,nan): a range needs"),
    (["study=example20", "source=${now:%S}"], "source must be a mapping"),
    (["study=example20", "depths=${seed}"], "depths must be a list"),
    (["figure=fig4", "grids.smoke=3", "scale=smoke"], "grids"),
    # text for a folder that names none
    (["outputs="], "outputs='' is not a folder: give outputs=FOLDER"),
    (["figure=fig4", "outputs='a\nb'"], "outputs='a\\nb' is not a folder: give outputs=FOLDER"),
    (["outputs='~nobody-of-this-name/x'"], "is not a folder: give outputs=FOLDER"),
]


@pytest.mark.parametrize(("arguments", "message"), COMMANDS)
def test_a_wrong_command_is_explained(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert check_only(arguments, monkeypatch) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.out + shown.err
    if "unrecognized" not in message:  # argparse puts its usage before the line
        assert shown.err.startswith("error: ") and len(shown.err.splitlines()) <= 2


def test_a_separate_configuration_serves_single_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("a: [b\n c: {")
    assert check_only(["--config-dir=.", "--config-name=bad"], monkeypatch) == 2
    shown = capsys.readouterr().err
    assert "bad.yaml" in shown and len(shown.splitlines()) <= 2
    (tmp_path / "mine.yaml").write_text("defaults: [config, _self_]\ntarget_width: 4\n")
    words = ["--config-dir=.", "--config-name=mine"]
    assert check_only(words, monkeypatch) == 0
    assert check_only([*words, "figure=fig4"], monkeypatch) == 2
    assert "composed from config alone" in capsys.readouterr().err


SMALLEST = "study=example20 scale=smoke threads=1"

WAYS = [
    SMALLEST,
    f"-m {SMALLEST}",
    "figure=bottleneck-example20 scale=smoke",
    "figures bottleneck-example20 scale=smoke",
    "runs",
    "runs list",
    "runs check",
    "runs diff a b",
    "runs export --csv",
    "runs clean",
    "report",
    "reference keep",
    "reference draw",
    "compare",
]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("/proc/x", "outputs=/proc/x cannot be used (No such file or directory)"),
        ("file", "outputs=file cannot be used (Not a directory)"),
        ("", "outputs='' is not a folder: give outputs=FOLDER"),
    ],
)
def test_bad_outputs_end_alike_everywhere(typed, shown, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for way in WAYS:
        assert run_here([*way.split(), f"outputs={typed}"], monkeypatch) == 2, way
        said = capsys.readouterr().err
        if way == "runs diff a b" and typed == "/proc/x":  # a run is named, and there is none
            assert said == "error: a names no run: there are no runs under /proc/x\n"
        else:
            assert said == f"error: {shown}\n", way
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_tilde_is_the_home_everywhere(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert run_here([*SMALLEST.split(), "outputs=~/runs"], monkeypatch) == 0
    for way in ("runs check", "report scale=smoke", f"-m {SMALLEST}"):
        assert run_here([*way.split(), "outputs=~/runs"], monkeypatch) == 0
    assert "1 run, 0 damaged" in capsys.readouterr().out
    assert run_here(["runs", "list", "~/runs"], monkeypatch) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert Settings(outputs="~/runs").folder() == tmp_path / "home" / "runs"


FILES = [
    (b"# @package _global_\nseed: 1\n# caf\xe9\n", "line 3: not in UTF-8"),
    (b"# mine\n# @package _global_\nseed: 1\n", "must be the first line"),
    (b"# @package _global_\nseed: 1\nseed: 2\n", "line 3: found duplicate key seed"),
    (b"# @package _global_\nscale: paper\ndepths: [8]\n", "- override /scale: paper"),
    (b"# @package _global_\nseed: [\n", "line"),
    (b"# @package _global_\nseed: 1\ndepht: 3\n", "depht is not a key"),
]


@pytest.mark.parametrize(("content", "message"), FILES)
def test_a_wrong_file_is_named_with_the_correction(content, message, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_bytes(content)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    catalogue.add_studies(tmp_path / "mine")
    try:
        assert check_only(["study=example20", "experiment=small"], monkeypatch) == 2
    finally:
        catalogue.forget()
    errors = capsys.readouterr().err
    assert message in errors and "experiment/small.yaml" in errors and len(errors.splitlines()) < 3


def test_hydras_own_flags_take_whole_numbers_as_a_run_does(monkeypatch, capsys):
    assert check_only(["study=example20", "seed=1e1", "--cfg", "job"], monkeypatch) == 0
    assert "seed: 10\n" in capsys.readouterr().out
