"""The program as a library."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import runner
from runner.core.errors import InputError, RunFailed

SMOKE = {"scale": "smoke", "device": "cpu"}


@pytest.fixture
def keys(tmp_path):
    return {**SMOKE, "outputs": str(tmp_path)}


def test_importing_loads_nothing_heavy_and_starts_and_changes_nothing():
    code = (
        "import logging, sys, runner;"
        "assert not {'torch', 'matplotlib', 'hydra'} & set(sys.modules);"
        "import matplotlib; matplotlib.use('svg'); runner.figure;"
        "assert matplotlib.get_backend() == 'svg';"
        "assert not logging.getLogger().handlers;"
        "assert not logging.getLogger('runner').handlers"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stderr


def test_completion_knows_the_functions_and_the_version():
    assert {*runner.__all__, "__version__"} == {*dir(runner)}
    assert runner.__version__[0].isdigit()


def test_a_run_with_its_tables(keys, capsys):
    run = runner.run("example20", seed=np.int64(3), depths=[8, 16], **keys)
    metrics = run.tables()["metrics"]
    assert isinstance(metrics, pd.DataFrame) and set(metrics["depth"]) == {8, 16}
    assert run.config.seed == 3 and (run.folder / "result.json").exists()
    assert runner.load(run.folder).config == run.config
    assert capsys.readouterr().out == ""
    changed = run.result_path.stat().st_mtime_ns
    runner.run("example20", seed=3, depths=[8, 16], **keys)
    assert run.result_path.stat().st_mtime_ns == changed, "what is complete is not computed again"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_sweep_gives_its_runs_in_order(keys, n_jobs):
    runs = runner.sweep("example20", n_jobs, seed=[2, 1], depths=[[8], [8, 16]], **keys)
    assert [(run.config.seed, run.config.depths) for run in runs] == [
        (2, [8]),
        (2, [8, 16]),
        (1, [8]),
        (1, [8, 16]),
    ]
    joined = runner.tables(runs)["metrics"]
    assert joined.groupby("run").ngroups == 4 and set(joined["seed"]) == {1, 2}


def test_a_sweep_of_one_run_prints_nothing_in_the_callers_process(keys, capfd):
    before = [*logging.getLogger("runner").handlers]
    runner.sweep("example20", 2, depths=[[8]], **keys)
    assert capfd.readouterr() == ("", "") and logging.getLogger("runner").handlers == before


def test_a_figure_computes_draws_and_judges(keys):
    figure = runner.figure("bottleneck-example20", **keys)
    with pytest.raises(InputError, match="missing"):
        figure.draw()
    tables = figure.compute()
    assert set(tables) == {"metrics"} and all(run.is_complete() for run in figure.runs)
    assert figure.draw(tables).axes
    assert len(figure.numbers()) > 0
    judged = figure.judge(tables)
    assert {"claim", "statement", "verdict", "measured"} <= set(judged)
    altered = {"metrics": tables["metrics"].assign(max_error=1.0)}
    verdicts = figure.judge(altered).set_index("claim")["verdict"]
    assert verdicts["represents"] != "holds"
    assert len(figure.judge(runner.figure("bottleneck-example20", scale="quick").reference())) > 0


def test_a_list_for_a_parameter_of_a_figure_means_several_runs():
    """A parameter that is a list itself takes the list as its value."""
    figure = runner.figure("rank-fig1", depth=np.array([1, 4]), normalizations=["batch"], **SMOKE)
    assert [run.config.depth for run in figure.runs] == [1, 4]
    assert {(*run.config.normalizations,) for run in figure.runs} == {("batch",)}
    assert figure.overrides == ("depth=1,4", "normalizations=[batch]")
    whole = runner.figure("rank-fig1", depth=[4, 2, 1], **SMOKE)
    assert whole.is_canonical


def test_the_reference_gives_no_tables_of_other_parameters(tmp_path):
    """Style and outputs change no number."""
    plain = runner.figure("rank-fig1", style="paper", outputs=str(tmp_path), seed=30)
    assert {*plain.reference()["metrics"]["seed"]} == {30}
    for name, keys in [
        ("rank-fig1", {"seed": 3, "width": 32, "activation": "tanh"}),
        ("bottleneck-example20", {"exponents": [0.5]}),
    ]:
        changed = runner.figure(name, **keys)
        words = ", ".join(changed.overrides)
        with pytest.raises(InputError, match="call compute") as error:
            changed.reference()
        assert f"does not have {name} with {words}:" in str(error.value)
        assert changed._repr_png_() is None


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: runner.run("exampel20"), "did you mean 'example20'"),
        (lambda: runner.run("example20", dept=3), "did you mean 'depths'"),
        (lambda: runner.run("example20", seed=-1), "must be at least 0"),
        (
            lambda: runner.run("example20", seed=[4, 8]),
            r'runner.sweep\("example20", seed=\[4, 8\]\)',
        ),
        (lambda: runner.run("example20", seed=object()), "cannot be the value of a parameter"),
        (lambda: runner.sweep("example20", seed=[]), "gives no runs"),
        (lambda: runner.run("example20", figure="fig4"), "runner.figure makes figures"),
        (lambda: runner.figure("fig44"), "did you mean 'fig4'"),
        (lambda: runner.figure("rank-fig1", dept=[1, 2]), "did you mean 'depth'"),
        (lambda: runner.figure("rank-fig1", depth=[]), "gives no runs"),
        (lambda: runner.figure("rank-fig1", width=[8, 16]), "one value of width"),
        (
            lambda: runner.figure("bottleneck-example20", depths=[[12], [48]]),
            r"give one list, depths=\[12,48\]",
        ),
        (lambda: runner.load("/nowhere"), "cannot be read"),
        (lambda: runner.add_studies("/nowhere"), "there is no such folder"),
    ],
)
def test_what_is_wrong_is_said(attempt, message):
    with pytest.raises(InputError, match=message):
        attempt()


def test_a_run_that_fails_raises(keys, monkeypatch):
    monkeypatch.setattr(
        "runner.papers.bottleneck_structure.example20.study.run", lambda config, context: [][0]
    )
    with pytest.raises(RunFailed, match="IndexError"):
        runner.run("example20", **keys)
    with pytest.raises(RunFailed, match="2 of 2 runs failed"):
        runner.sweep("example20", seed=[1, 2], **keys)
