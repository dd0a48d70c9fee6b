"""Malformed command lines and configurations: a short message, and the right exit code."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from in_process import check_only
from in_process import run as run_here

from runner.core.catalogue import configs
from runner.core.settings import Settings

KEYS = sorted(
    {f for c in configs().values() for f in c.__dataclass_fields__} - {"study", "version"}
)

HYDRAS_FOLDERS = (
    "hydra.run.dir=x",
    "hydra.sweep.dir=x",
    "hydra.sweep.subdir=x",
    "hydra.job.chdir=true",
)

COMMANDS = [
    # names that do not exist
    (["study=bn_onyl"], "did you mean 'bn_only'"),
    (["study=constructons"], "did you mean 'constructions'"),
    (["study=xyz"], "study=xyz is unknown: choose from"),
    (["study=../bn_only"], "is unknown"),
    (["scale=quik"], "did you mean 'quick'"),
    (["scale=huge"], "scale=huge is unknown: choose from"),
    (["figure=fig44"], "did you mean 'fig4'"),
    (["-m", "figure=fig44"], "did you mean 'fig4'"),
    (["figure=fig4", "scale=papr"], "did you mean 'paper'"),
    (["figures", "scale=smok"], "did you mean 'smoke'"),
    (["claims", "scale=smok"], "did you mean 'smoke'"),
    (["report", "scale=smok"], "did you mean 'smoke'"),
    (["figures", "fig4", "figure=fig5"], "figures are named here without a key: fig5"),
    (["reference", "judge", "scale=quick"], "it takes no words"),
    (
        ["study=rank_chain", "measure=spectrum", "engine=direct"],
        "engine=direct changes nothing with",
    ),
    (["hydra/launcher=jobib"], "did you mean 'joblib'"),
    (["hydra/sweeper=basik"], "did you mean 'basic'"),
    # what Hydra can do, and is of no use here
    *(([word], "outputs=FOLDER moves them all") for word in HYDRAS_FOLDERS),
    *((["-m", word], "outputs=FOLDER moves them all") for word in HYDRAS_FOLDERS),
    (["-m", "study=example20", "seed=interval(1,3)"], "needs a list of values"),
    (["-m", "study=glob(zz*)"], "no values are given"),
    (["-m", "seed=range(5,1)"], "no values are given"),
    # words that are no key=value
    (["fig4"], "To see it: runner show fig4. To compute it: runner figure=fig4"),
    (["bn_only"], "To run it: runner study=bn_only"),
    (["fig44"], "fig44 is not a command, a figure or a study: did you mean 'fig4'?"),
    (["frobnicate"], "see runner --help for all of them"),
    (["reference", "draw", "fig4"], "takes no name. To see one: runner show fig4"),
    # keys that do not exist
    (["memory_limit=1"], "All of them: runner study=bn_only --help"),
    (["submit_only=true"], "bn_only has no parameter submit_only"),
    (["depht=3"], "did you mean 'depth' of study="),
    (["target_widht=3"], "did you mean 'target_width'"),
    (["replicate=3"], "did you mean 'replicates'"),
    (["-m", "target_widht=3,4"], "did you mean 'target_width'"),
    (["figure=fig4", "target_widht=3"], "did you mean 'target_width'"),
    (["++depht=3"], "depht is not a key"),
    (["+depht=3"], "depht"),
    (["target_width.x=3"], "target_width"),
    (["hydra.run=3"], "hydra.run"),
    (["hydra.rn.dir=x"], "rn"),
    # values of the wrong type
    (["target_width=abc"], "target_width: Value 'abc'"),
    (["target_width=2.5"], "target_width: Value '2.5'"),
    (["target_width=null"], "target_width"),
    (["target_width=[1,2]"], "target_width: Value '[1, 2]'"),
    (["target_width={a:1}"], "target_width"),
    (["-m", "target_width=true,false"], "target_width: Value 'True'"),
    (["sparsity=half"], "sparsity: Value 'half'"),
    (["seed=1.5"], "seed: Value '1.5'"),
    (["force=maybe"], "force: Value 'maybe'"),
    (["methods=sgd"], "methods"),
    (["methods={a:1}"], "methods"),
    (["learning_rate=fast"], "learning_rate: Value 'fast'"),
    (["threads=two"], "threads: Value 'two'"),
    # values outside their range
    (["target_width=0"], "target_width=0 must be at least 1"),
    (["target_width=-1"], "target_width=-1 must be at least 1"),
    (["-m", "target_width=5,-1"], "target_width=-1 must be at least 1"),
    (["figure=fig4", "target_width=0"], "target_width=0 must be at least 1"),
    (["widths=[0]"], "widths=0 must be at least 1"),
    (["sparsity=1.5"], "sparsity=1.5 must be above 0 and at most 1"),
    (["sparsity=0"], "sparsity=0.0 must be above 0"),
    (["sparsity=nan"], "sparsity=nan must be"),
    (["sparsity=-inf"], "sparsity=-inf must be"),
    (["replicates=0"], "replicates=0 must be at least 1"),
    (["train_samples=0"], "train_samples=0"),
    (["test_samples=-5"], "test_samples=-5"),
    (["batch_size=0"], "batch_size=0"),
    (["learning_rate=0"], "learning_rate=0.0 must be above 0"),
    (["learning_rate=nan"], "learning_rate=nan must be"),
    (["seed=-1"], "seed=-1 must be at least 0"),
    (["threads=0"], "threads=0 must be at least 1"),
    (["checkpoint_seconds=-1"], "checkpoint_seconds=-1.0 must be at least 0"),
    (["methods=[]"], "methods=[] is empty"),
    (["methods=[sgd,dens]"], "did you mean 'dense'"),
    (["schedule=cosin"], "did you mean 'cosine'"),
    (["optimizer=lion"], "optimizer=lion is unknown: choose from adam, momentum, sgd"),
    (["-m", "figure=fig4,fig5", "scale=smoke"], "several at once: runner figures"),
    # text that is no override
    (["target_width=["], "target_width=[ cannot be read: a bracket ] is missing"),
    (["target_width"], "target_width is a key: write target_width=value"),
    (["=3"], "=3: a key is missing"),
    (["study=null"], "Config group override"),
    (["size=3"], "Config group override"),
    (["study=bn_only,constructions"], "are a sweep: add -m"),
    (["+scale=smoke"], "scale"),
    (["++study=bn_only"], "force-add of config groups"),
    (["target_width@x=3"], "config group"),
    (["--nonsense"], "unrecognized arguments"),
    # extremes
    (["study=bottleneck", "ridge=1e155"], "ridge=1e+155 must be at least 0 and at most 1000000.0"),
    (["study=bottleneck", "ridge=inf"], "ridge=inf must be at least 0 and at most 1000000.0"),
    (["study=symmetry", "ridge=inf"], "ridge=inf must be"),
    (["study=rank_one", "ridge=1e155"], "ridge=1e+155 must be"),
    (["study=linear", "ridges=[0.1,inf]"], "ridges=inf must be above 0 and at most 1000000.0"),
    (["study=low_rank_training", "weight_decays=[0,inf]"], "weight_decays=inf must be"),
    (["learning_rate=inf"], "learning_rate=inf must be above 0 and at most 1e+38"),
    (["threads=99999999999"], "threads=99999999999 must be at least 1 and at most 1024"),
    ([f"seed={10**399}"], "seed has 1326 bits: it must be at most 9223372036854775807"),
    ([f"target_width={10**399}"], "target_width has 1326 bits"),
    (["study=rank_one", f"samples=[4,{10**399}]"], "samples has 1326 bits"),
    ([f"learning_rate={10**399}"], "int too large to convert to float"),
    ([f"study={'a' * 300}"], "is unknown: choose from"),
    ([f"figure={'a' * 300}"], "is unknown: choose from"),
    ([f"{'a' * 300}=3"], "bn_only has no parameter aaa"),
    (["methods=[sgd,dense,sgd]"], "methods=[sgd,dense,sgd] holds sgd twice"),
    (["study=rank_one", "samples=[4,6,4]"], "samples=[4,6,4] holds 4 twice"),
    (["study=rank_chain", "skips=[0.1,inf,0.1]"], "skips=[0.1,inf,0.1] holds 0.1 twice"),
    (["figure=rank-fig1", "normalizations=[batch,batch]"], "holds batch twice"),
    (["hydra.mode=FOO"], "expected one of [RUN, MULTIRUN]"),
    (["hydra.run.dir=/dev/null"], "outputs=FOLDER moves them all"),
    (["--config-name", "nonsense"], "Cannot find primary config 'nonsense'"),
    (["--config-dir=nowhere"], "nowhere: there is no such folder"),
    # text for a folder that names none
    (["outputs="], "outputs='' is not a folder: give outputs=FOLDER"),
    (["-m", "outputs="], "outputs='' is not a folder: give outputs=FOLDER"),
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


@pytest.mark.parametrize(
    "arguments", [["--config-dir=.", "--config-name=bad"], ["--config-dir=.", "study=bad"]]
)
def test_a_malformed_configuration_of_ones_own_is_named(arguments, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "bad.yaml", tmp_path / "study" / "bad.yaml"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("a: [b\n c: {")
    assert check_only(arguments, monkeypatch) == 2
    shown = capsys.readouterr().err
    assert "bad.yaml" in shown and len(shown.splitlines()) <= 2


def test_a_configuration_of_ones_own_serves_single_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
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


VALUES = st.one_of(
    st.sampled_from(
        ["", "1", "-1", "nan", "inf", "null", "[1,2]", "{a:1}", "1,2", "${x}", "'", "["]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=12),
)
OVERRIDES = st.one_of(
    st.text(max_size=25),
    st.builds(
        lambda prefix, key, value: f"{prefix}{key}={value}",
        st.sampled_from(["", "", "+", "++", "~", "hydra.", "hydra/", "@"]),
        st.one_of(
            st.sampled_from([*KEYS, "study", "scale", "figure", "size"]), st.text(max_size=8)
        ),
        VALUES,
    ),
)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(arguments=st.lists(OVERRIDES, min_size=1, max_size=2))
@example(arguments=["target_width=${seed}"])
@example(arguments=["target_width=${target_width}"])
@example(arguments=["outputs=${oc.env:NO_SUCH_VARIABLE}"])
@example(arguments=["target_width=\x00"])
@example(arguments=["\n"])
def test_no_override_makes_the_runner_print_a_traceback(arguments, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert check_only(arguments, monkeypatch) in (0, 2)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
