"""What a file sets arrives: settings and parameters in experiments, figures and shipped presets."""

import os
from dataclasses import fields

import pytest
import warm
import yaml
from in_process import composed

from runner.cli.catalogue import CONF, SCALES, sizes
from runner.cli.composing import compose_figure, compose_study
from runner.cli.settings import CommandSettings
from runner.core import rooms

CHOSEN_BY_GROUPS = {"study", "scale", "figure", "source"}
"""Settings that the defaults list chooses, each by a group of files."""

OTHER = {
    "device": "cpu",
    "outputs": "elsewhere",
    "force": True,
    "stale": "refuse",
    "fail_fast": True,
    "threads": 2,
    "wait": False,
    "checkpoint_seconds": 3.5,
    "data_folder": "images",
    "tracker": "mlflow",
    "submit_only": True,
    "objective": "metrics.parameter_norm",
    "style": "paper",
}
"""Another value than the default for each setting."""

EXPERIMENT = """\
# @package _global_
defaults:
  - override /study: example20
"""

README_EXPERIMENT = """\
# @package _global_
# mine/experiment/deep.yaml              runner --config-dir mine experiment=deep
defaults:
  - override /study: rank_collapse
depth: 64
seed: 7
"""


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder of one's own: the experiment and the figure `mine`, each with OTHER and a seed."""
    monkeypatch.setenv(rooms.FOLDERS, os.environ.get(rooms.FOLDERS, ""))
    for group in ("experiment", "figure"):
        (tmp_path / group).mkdir()
        named = {"figure": "mine"} if group == "figure" else {}
        text = EXPERIMENT + yaml.safe_dump(OTHER | {"seed": 7} | named)
        (tmp_path / group / "mine.yaml").write_text(text)
    rooms.add_room(tmp_path)
    yield
    rooms.rooms.cache_clear()
    rooms.configs.cache_clear()


def test_every_setting_has_another_value_here():
    assert {item.name for item in fields(CommandSettings)} == set(OTHER) | CHOSEN_BY_GROUPS
    for key, value in OTHER.items():
        assert getattr(CommandSettings(), key) != value


def jobs_of(group):
    """The jobs of the experiment or of the figure `mine`."""
    if group == "figure":
        return compose_figure("mine", ["scale=smoke"]).jobs
    return compose_study("example20", ["experiment=mine", "scale=smoke"])[1]


@pytest.mark.parametrize("group", ["experiment", "figure"])
def test_settings_in_a_file_arrive(room, group):
    (job,) = jobs_of(group)
    assert {key: getattr(job.settings, key) for key in OTHER} == OTHER
    assert job.config.seed == 7


def test_what_is_typed_wins_over_the_file(room):
    _, (job,) = compose_study("example20", ["experiment=mine", "seed=9", "threads=3"])
    assert (job.config.seed, job.settings.threads) == (9, 3)


def test_the_experiment_of_the_readme_reaches_its_run(tmp_path):
    readme = (CONF.parent / "README.md").read_text()
    assert README_EXPERIMENT in readme
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "deep.yaml").write_text(README_EXPERIMENT)
    words = ("--config-dir", "mine", "experiment=deep", "scale=smoke", "device=cpu")
    done = warm.run("-m", "runner", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("outputs/runs/rank_collapse/*/config.yaml")
    kept = yaml.safe_load(path.read_text())
    assert (kept["seed"], kept["depth"]) == (7, 64)


def values_of(path):
    """The keys of a preset with their values, without what Hydra reads itself."""
    content = yaml.safe_load(path.read_text())
    read_by_others = ("defaults", "grids", "hydra")
    return {key: value for key, value in content.items() if key not in read_by_others}


def is_the_same(arrived, written):
    """Whether a value is that of the file, where a list has `inf` as a text."""
    if isinstance(written, list):
        written = [float(each) if each == "inf" else each for each in written]
    return arrived == written


def value_in(pair, key):
    """What a key has in composed settings and parameters."""
    return next(getattr(each, key) for each in pair if hasattr(each, key))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("study", sorted(path.stem for path in CONF.glob("size/*.yaml")))
def test_every_key_of_a_size_arrives(study, scale):
    pair = composed(f"study={study}", f"scale={scale}")
    for key, value in sizes(study)[scale].items():
        assert is_the_same(value_in(pair, key), value), key


@pytest.mark.parametrize("path", sorted(CONF.glob("data/*.yaml")), ids=lambda p: p.stem)
def test_every_key_of_a_dataset_arrives(path):
    study = ("rank_collapse", "train=false") if path.stem == "gaussian" else ("breaking_bn",)
    pair = composed(f"study={study[0]}", f"data={path.stem}", *study[1:])
    for key, value in values_of(path).items():
        assert is_the_same(value_in(pair, key), value), key


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("path", sorted(CONF.glob("figure/*.yaml")), ids=lambda p: p.stem)
def test_every_key_of_a_figure_arrives_in_every_run(path, scale):
    """Those that no grid of the figure varies."""
    grids = yaml.safe_load(path.read_text())["grids"][scale]
    varied = {key for grid in grids if isinstance(grid, dict) for key in grid}
    for job in compose_figure(path.stem, [f"scale={scale}"]).jobs:
        for key, value in values_of(path).items():
            if key not in varied:
                assert is_the_same(value_in((job.settings, job.config), key), value), key
