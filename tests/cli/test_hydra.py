"""What users of Hydra expect: sweeps in its words, experiments, other sweepers, completion."""

import logging
import subprocess

import pandas as pd
import pytest
import warm

from runner.cli.completion import completions
from runner.cli.objective import require_objective
from runner.core.errors import InputError

SMOKE = ("study=example20", "scale=smoke", "device=cpu")
SUBCOMMANDS = ("runs", "report", "figures")

EXPERIMENT = """\
# @package _global_
defaults:
  - override /study: example20
seed: 9
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      seed: range(5,7)
"""

SEARCHER = '''
"""A sweeper that searches: it halves an interval towards the smallest objective."""

from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper


class Searcher(Sweeper):
    def setup(self, *, hydra_context, task_function, config):
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments):
        jobs = [[*arguments, f"seed={seed}"] for seed in (1, 2)]
        print([job.return_value for job in self.launcher.launch(jobs, initial_job_idx=0)])
'''


@pytest.fixture
def place(tmp_path):
    """A folder to run in, with a room `mine` that has an experiment."""
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "seeds.yaml").write_text(EXPERIMENT)
    return tmp_path


def runner(place, *arguments):
    return warm.run("-m", "runner", *arguments, cwd=place)


def seeds(place):
    tables = map(pd.read_csv, place.glob("outputs/runs/example20/*/metrics.csv"))
    assert all(len(table) for table in tables)
    configs = place.glob("outputs/runs/example20/*/config.yaml")
    return sorted(int(path.read_text().partition("seed: ")[2].split()[0]) for path in configs)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*SMOKE, "seed=range(1,3)"), [1, 2]),
        ((*SMOKE, "seed=choice(3,4)"), [3, 4]),
        (("study=glob(example*)", *SMOKE[1:], "seed=5"), [5]),
        (("--config-dir", "mine", "experiment=seeds", *SMOKE[1:]), [5, 6]),
        (("-cd=mine", "experiment=seeds", *SMOKE[1:], "seed=7"), [7]),
    ],
)
def test_sweeps_in_hydras_words(place, words, expected):
    done = runner(place, *(() if "experiment=seeds" in words else ("-m",)), *words)
    assert done.returncode == 0, done.stderr
    assert seeds(place) == expected


def test_an_interval_is_no_list(place):
    done = runner(place, "-m", *SMOKE, "seed=interval(1,3)")
    assert done.returncode == 2 and "list the values" in done.stderr


@pytest.mark.parametrize(
    "word", ["hydra.run.dir=x", "hydra.sweep.dir=x", "hydra.sweep.subdir=x", "hydra.job.chdir=true"]
)
@pytest.mark.parametrize("mode", [(), ("-m",)])
def test_hydras_own_folders_are_refused_with_a_word(place, word, mode):
    done = runner(place, *mode, *SMOKE, word)
    assert done.returncode == 2 and "outputs=FOLDER moves them all" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (place / "outputs").exists()


def test_verbose_shows_the_traceback_and_other_logs(place):
    done = runner(place, *SMOKE, "seed=-1", "hydra.verbose=true")
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: seed=-1" in done.stderr
    done = runner(place, *SMOKE, "seed=-1")
    assert "Traceback" not in done.stderr
    assert logging.getLogger().level != logging.DEBUG


def test_another_sweeper_gets_an_objective(place):
    """One from outside, as `hydra/sweeper=optuna` is: it reads what the jobs return."""
    plugins = place / "site" / "hydra_plugins"
    plugins.mkdir(parents=True)
    (plugins / "searcher.py").write_text(SEARCHER)
    (place / "mine" / "hydra" / "sweeper").mkdir(parents=True)
    (place / "mine" / "hydra" / "sweeper" / "search.yaml").write_text(
        "_target_: hydra_plugins.searcher.Searcher\n"
    )
    words = ("-m", "--config-dir", "mine", "hydra/sweeper=search", *SMOKE)
    env = {"PYTHONPATH": f"{place / 'site'}:{warm.REPOSITORY / 'src'}"}
    objective = "objective=metrics.parameter_norm"
    done = warm.run("-m", "runner", *words, objective, cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    tables = [pd.read_csv(path) for path in sorted(place.glob("outputs/runs/*/*/metrics.csv"))]
    returned = [float(text) for text in done.stdout.strip(" []\n").split(",")]
    assert returned == [table["parameter_norm"].mean() for table in tables]
    done = warm.run("-m", "runner", *words, "objective=metrics.norm", cwd=place, env=env)
    assert done.returncode == 2 and "metrics.parameter_norm" in done.stderr


def test_an_objective_may_be_a_column_that_a_table_inherits():
    require_objective("training.train_accuracy", "pretraining")
    with pytest.raises(InputError, match="did you mean"):
        require_objective("training.train_acuracy", "pretraining")
    with pytest.raises(InputError, match="objective=training.method is not known"):
        require_objective("training.method", "pretraining")


def test_a_basic_sweep_computes_the_runs_as_well(place):
    done = runner(place, "-m", *SMOKE, "hydra/sweeper=basic", "seed=1,2")
    assert done.returncode == 0, done.stderr
    assert seeds(place) == [1, 2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "python -m runner study=ra",
            ["study=rank_chain", "study=rank_collapse", "study=rank_one"],
        ),
        ("runner figure=rank-fig3", ["figure=rank-fig3a", "figure=rank-fig3b"]),
        ("runner study=rank_collapse activ", ["activation="]),
        ("runner study=rank_collapse activation=", ["activation=linear", "activation=relu"]),
        ("runner -m study=rank_one,rank_ch", ["study=rank_one,rank_chain"]),
        ("runner scale=q", ["scale=quick"]),
        ("runner force=", ["force=false", "force=true"]),
        ("runner hydra/launcher=job", ["hydra/launcher=joblib"]),
        ("runner re", ["replicates=", "report"]),
        ("runner report sc", ["scale="]),
        ("runner report scale=q", ["scale=quick"]),
        ("runner report r", []),
        ("runner runs l", ["list"]),
        ("runner runs list l", []),
        ("runner figures fig4 rank-fig3", ["rank-fig3a", "rank-fig3b"]),
        ("runner study=nothing nowh", []),
    ],
)
def test_what_tab_offers(line, expected):
    assert completions(line, SUBCOMMANDS) == expected


def test_the_shell_completes(place):
    """Bash itself, with what `-sc install=bash` prints; the part before `=` stays as it is."""
    install = runner(place, "-sc", "install=bash").stdout
    (place / "python").write_text("#!/bin/sh\necho study=rank_chain study=rank_one\n")
    (place / "python").chmod(0o755)
    script = f"""{install}
COMP_LINE='./python -m runner study=ra'; COMP_POINT=${{#COMP_LINE}}
_runner_completion ./python; echo "${{COMPREPLY[*]}}"
COMP_LINE='./python other.py'; COMP_POINT=${{#COMP_LINE}}
_runner_completion ./python; echo "none: ${{COMPREPLY[*]}}"
"""
    done = subprocess.run(["bash", "-c", script], cwd=place, capture_output=True, text=True)
    assert done.stdout == "rank_chain rank_one\nnone: \n", done.stderr
    refused = runner(place, "-sc", "install=fsh")
    assert refused.returncode == 2 and "bash" in refused.stderr
