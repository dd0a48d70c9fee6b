"""Folders of runs: their readable names, and how a run finds its folder by the hash."""

import shutil

import pytest
from in_process import order_of

from runner.core.catalogue import configs
from runner.core.settings import Settings
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.runs import inventory
from runner.runs.execution import execute
from runner.runs.folder_names import LONGEST_NAME, MARK, NAME, before, folder_name
from runner.runs.run import Run, hash_of, load

CONFIG = Example20(depths=[4], grid=3)


def compute(outputs, config=CONFIG, **settings) -> Run:
    run = Run(config, outputs)
    execute(run, Settings(outputs=str(outputs), device="cpu", **settings))
    return run


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["study=rank_collapse"], "depth=32"),
        (["study=rank_collapse", "depth=8", "scale=smoke"], "depth=8"),
        (["study=rank_collapse", "seed=3", "depth=8"], "depth=8,seed=3"),
        (["study=rank_collapse", "replicates=7"], "depth=32,replicates=7"),
        (["study=rank_collapse", "replicates=5", "scale=quick"], "depth=32,replicates=5"),
        (["study=norm_layers", "scale=smoke"], "target_width=10"),
        (["study=constructions", "width=400"], "theorem=wide,target_width=16,width=400"),
    ],
)
def test_a_name_has_the_main_parameters_and_no_value_that_the_scale_sets(words, start):
    (job,) = order_of(*words).jobs
    assert NAME.fullmatch(job.run.folder.name)["knobs"] == start


def test_main_parameters_are_parameters():
    for config_class in configs().values():
        assert config_class.named and {*config_class.named} <= {*vars(config_class())}


def test_a_name_fits_a_file_system_and_a_shell():
    for value in ("ä 'b'\n*:/" * 40, "module:function", "", "\U0001f600" * 200):
        config = Example20(grid=3)
        object.__setattr__(config, "depths", value)  # as a user's function or file may be called
        text = folder_name(config, "0123abcd")
        assert len(text.encode()) <= LONGEST_NAME + 9 and NAME.fullmatch(text)
        assert not set(text) & set(" '\n*:/")


@pytest.mark.parametrize("name", ["depths=4,grid=3", "a name-of-another version,grid=3"])
def test_a_folder_of_another_name_is_the_run_if_it_has_the_hash(tmp_path, name):
    run = compute(tmp_path)
    other = run.folder.with_name(f"{name}-{hash_of(CONFIG)}")
    run.folder.rename(other)
    written = (other / "result.json").stat().st_mtime_ns
    again = compute(tmp_path)
    assert again.folder == other and not run.folder.exists()
    assert (other / "result.json").stat().st_mtime_ns == written
    assert inventory.problem(other) is None
    assert compute(tmp_path, force=True).folder == other
    assert (other / "result.json").stat().st_mtime_ns > written
    assert [path.name for path in other.parent.iterdir() if path.name[0] != "."] == [other.name]


def test_a_run_that_has_only_old_numbers_is_found_under_its_old_name(tmp_path):
    """Its process was killed after it had renamed the folder."""
    run = compute(tmp_path)
    other = run.folder.with_name(f"old-{hash_of(CONFIG)}")
    run.folder.rename(before(other))
    (before(other) / MARK).touch()
    assert inventory.folders(tmp_path) == [other] and inventory.problem(other) is None
    assert inventory.describe(other).status == "absent"
    assert compute(tmp_path).folder == other and (other / "result.json").exists()
    assert not run.folder.exists() and not before(other).exists()


def test_of_two_folders_the_complete_one_is_used_and_counts_once(tmp_path):
    run = compute(tmp_path)
    other = run.folder.with_name(f"old-{hash_of(CONFIG)}")
    shutil.copytree(run.folder, other)
    both = [info.run for info in inventory.find(tmp_path)]
    assert len(both) == 2
    assert len(load(both)["metrics"]) == len(load([run])["metrics"])
    assert (
        "is the same run as" in inventory.problem(other) and inventory.problem(run.folder) is None
    )
    run.result_path.unlink()
    assert Run(CONFIG, tmp_path).folder == other


def test_the_names_of_tables_and_changed_figures_do_not_depend_on_folders(tmp_path):
    run = compute(tmp_path)
    run.folder.rename(run.folder.with_name(f"old-{hash_of(CONFIG)}"))
    assert set(load([Run(CONFIG, tmp_path)])["metrics"]["run"]) == {
        "depths=4,grid=3-" + hash_of(CONFIG)
    }
    (figure,) = order_of("figure=bottleneck-example20", "grid=5", "scale=smoke").figures
    assert figure.name == "bottleneck-example20-3982158a"  # as in version 2.0
