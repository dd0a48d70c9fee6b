"""What users of Hydra expect: sweeps in its words, experiments, other sweepers, completion."""

import pandas as pd
import pytest
import warm
from in_process import order_of
from in_process import run as run_here

from runner.compose.hydra_errors import _explain_option
from runner.compose.hydra_main import require_objective
from runner.core.catalogue import configs
from runner.core.errors import InputError

SMOKE = ("study=example20", "scale=smoke", "device=cpu")

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
    """A folder to run in, with a folder `mine` that has an experiment."""
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "seeds.yaml").write_text(EXPERIMENT)
    return tmp_path


def seeds(place):
    tables = map(pd.read_csv, place.glob("outputs/runs/example20/*/metrics.csv"))
    assert all(len(table) for table in tables)
    paths = place.glob("outputs/runs/example20/*/config.yaml")
    return sorted(int(path.read_text().partition("seed: ")[2].split()[0]) for path in paths)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*SMOKE, "seed=range(1,3)"), [1, 2]),
        ((*SMOKE, "seed=choice(3,4)"), [3, 4]),
        (("study=glob(example*)", *SMOKE[1:], "seed=5"), [5]),
    ],
)
def test_sweeps_in_hydras_words(words, expected):
    assert [job.config.seed for job in order_of(*words, multirun=True).jobs] == expected


@pytest.mark.parametrize(
    ("words", "expected"), [(("--config-dir", "mine"), [5, 6]), (("-cd=mine", "seed=7"), [7])]
)
def test_an_experiment_in_a_folder_of_ones_own(place, words, expected):
    done = warm.run("-m", "runner", *words, "experiment=seeds", *SMOKE[1:], cwd=place)
    assert done.returncode == 0, done.stderr
    assert seeds(place) == expected


def test_verbose_shows_the_traceback_and_other_logs(place):
    done = warm.run("-m", "runner", *SMOKE, "seed=-1", "hydra.verbose=true", cwd=place)
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: seed=-1" in done.stderr


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
    numbers, hint = done.stdout.splitlines()
    returned = [float(text) for text in numbers.strip(" []").split(",")]
    assert returned == [table["parameter_norm"].mean() for table in tables]
    assert hint.endswith("runs plot --study example20")


def test_an_objective_may_be_a_column_that_a_table_inherits():
    require_objective("training.train_accuracy", "pretraining")
    with pytest.raises(InputError, match="did you mean"):
        require_objective("training.train_acuracy", "pretraining")
    with pytest.raises(InputError, match="objective=training.method is unknown"):
        require_objective("training.method", "pretraining")


def test_the_shell_completes(place, monkeypatch, capsys):
    """Hydra's own way: bash hears of `runner`, and asks it what the last word can become."""
    assert run_here(["-sc", "install=bash"], monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("hydra_bash_completion runner")
    monkeypatch.setenv("COMP_LINE", "runner study=ra")
    monkeypatch.delenv("COMP_POINT", raising=False)
    assert run_here(["-sc", "query=bash"], monkeypatch) == 0
    begun = [f"study={study}" for study in sorted(configs()) if study.startswith("ra")]
    assert capsys.readouterr().out.split() == begun and "study=rank_chain" in begun


IN_A_PROGRAM = """\
from concurrent.futures import ThreadPoolExecutor

import hydra
import runner


@hydra.main(config_path=None, version_base="1.3")
def main(config):
    keys = {"scale": "smoke", "device": "cpu"}
    before = hydra.core.hydra_config.HydraConfig.get()
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda seed: runner.run("example20", seed=seed, **keys), range(3)))
    assert [run.is_complete() for run in runs] == 3 * [True]
    assert hydra.core.hydra_config.HydraConfig.get() is before


main()
"""


def test_the_library_runs_within_another_program_of_hydras_and_in_threads(place):
    (place / "program.py").write_text(IN_A_PROGRAM)
    done = warm.run("program.py", cwd=place)
    assert done.returncode == 0, done.stderr
    assert seeds(place) == [0, 1, 2]


def test_an_absent_plugin_is_named():
    message = _explain_option("hydra/launcher", "joblib", "Available options in 'hydra/launcher':")
    assert message.endswith("needs pip install 'theory-runner[scale-out]'")
