"""Every file in conf/ composes, and every figure has its drawing, its claims and its grids."""

import dataclasses
from pathlib import Path

import pytest
import yaml
from in_process import composed

from runner.cli.catalogue import CONF, SCALES, figure_study, sizes
from runner.cli.composing import figure_runs
from runner.cli.grids import expand
from runner.core.rooms import configs
from runner.core.studies import default_of
from runner.results.claims import claims_of
from runner.results.figures import drawing_of

FIGURES = sorted(path.stem for path in (CONF / "figure").glob("*.yaml"))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("study", sorted(configs()))
def test_every_study_composes_at_every_scale(study, scale):
    settings, config = composed(f"study={study}", f"scale={scale}")
    assert (settings.study, settings.scale) == (study, scale)
    assert isinstance(config, configs()[study])


@pytest.mark.parametrize("study", sorted(configs()))
def test_defaults_are_those_of_the_code(study):
    """No file of a study has a value: what the sizes leave alone is the dataclass's."""
    assert list(yaml.safe_load((CONF / "study" / f"{study}.yaml").read_text())) == ["defaults"]
    _, config = composed(f"study={study}")
    for field in dataclasses.fields(config):
        if field.name not in sizes(study)["quick"]:
            assert getattr(config, field.name) == default_of(field), field.name


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_runs_at_every_scale(figure, scale):
    settings, runs = figure_runs(figure, [f"scale={scale}"])
    assert settings.scale == scale
    assert {run.study for run in runs} == {figure_study(figure)}


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_drawing_claims_and_a_headline(figure):
    assert drawing_of(figure, figure_study(figure))
    assert claims_of(figure, figure_study(figure))
    lines = Path(CONF / "figure" / f"{figure}.yaml").read_text().splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith(("# paper ", "# beside paper "))
    assert lines[2] == f"# runner figure={figure}"


def test_a_union_of_grids_is_the_sum_of_products_without_repetitions():
    grids = [{"a": [1, 2], "b": None}, {"a": 2, "b": [None, 3]}]
    assert expand(grids, ["seed=4"]) == [
        ["a=1", "b=null", "seed=4"],
        ["a=2", "b=null", "seed=4"],
        ["a=2", "b=3", "seed=4"],
    ]


def test_what_is_typed_wins_over_the_grid():
    assert expand([{"a": [1, 2], "b": 5}], ["a=7,8"]) == [["b=5", "a=7"], ["b=5", "a=8"]]
