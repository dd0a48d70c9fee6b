"""Two configurations never share a folder; other code is said where it is known."""

import json

import in_process
import pytest

from runner.core.settings import Settings
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.runs import costs, inventory, provenance
from runner.runs import run as runs
from runner.runs.execution import execute
from runner.runs.run import Run, kept_notes, read_config


@pytest.fixture
def colliding(monkeypatch):
    """Every configuration of a study has the same hash and the same name."""
    monkeypatch.setattr(runs, "hash_of", lambda config: "0123abcd")
    monkeypatch.setattr(runs, "folder_name", lambda config, hash8: f"depths=4-{hash8}")


def compute(outputs, depth: int, **settings) -> Run:
    run = Run(Example20(depths=[depth], grid=3), outputs)
    execute(run, Settings(outputs=str(outputs), device="cpu", **settings))
    return run


def test_configurations_of_one_name_have_folders_of_their_own(colliding, tmp_path):
    several = [compute(tmp_path, depth) for depth in (4, 6, 8)]
    assert [run.folder.name for run in several] == [
        "depths=4-0123abcd", "depths=4-0123abcd-2", "depths=4-0123abcd-3",
    ]  # fmt: skip
    for depth, run in zip((4, 6, 8), several, strict=True):
        again = Run(Example20(depths=[depth], grid=3), tmp_path)
        assert again.folder == run.folder and again.is_complete()
        assert set(again.tables()["metrics"]["depth"]) == {depth}
    found = inventory.find(tmp_path)
    assert [info.hash8 for info in found] == ["0123abcd", "0123abcd-2", "0123abcd-3"]
    assert [read_config(info.folder).depths for info in found] == [[4], [6], [8]]


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"code": 3}'])
def test_other_code_is_said_only_where_it_is_known(tmp_path, content, monkeypatch, capsys):
    run = compute(tmp_path, 4)
    path = run.folder / "provenance.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    (note,) = kept_notes([run], Settings())
    assert "not known" in note and "stale=recompute" in note and "other code" not in note
    assert in_process.run(["runs", "list", f"outputs={tmp_path}"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "unknown" in shown and "by code that is not known" in shown
    assert "other code" not in shown
    compute(tmp_path, 4, stale="recompute")
    assert not kept_notes([run], Settings())


@pytest.mark.parametrize("text", ["def f(t:", "def f(t):\n    return 1\n\0"])
def test_a_broken_module_of_the_users_stops_no_other_run(tmp_path, text, monkeypatch, capsys):
    name = f"broken_{abs(hash(text)) % 10**6}"
    module = tmp_path / f"{name}.py"
    module.write_text("def f(t):\n    return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    outputs = tmp_path / "outputs"
    compute(outputs, 4)
    sizes = {"samples": 20, "epochs": 2, "width": 3, "replicates": 1}
    run = Run(LowRankTraining(**sizes, measure=f"{name}:f"), outputs)
    execute(run, Settings(outputs=str(outputs), device="cpu"))
    module.write_text(text)
    runs.code_of.cache_clear()
    provenance._sources.clear()
    assert in_process.run(["runs", "list", f"outputs={outputs}"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert (
        "example20" in shown
        and "low_rank_training" in shown
        and "1 by code that is not known" in shown
    )


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": 3}', '{"runs": [{"run": "a"}]}'])
def test_a_damaged_file_of_the_reference_stops_no_run(tmp_path, content, monkeypatch):
    folder = tmp_path / "reference" / "quick" / "fig4"
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text(content)
    whole = tmp_path / "reference" / "quick" / "fig5"
    whole.mkdir()
    about = {"runs": [{"run": "example20 depths=4", "seconds": 3.0, "device": "cpu"}]}
    (whole / "provenance.json").write_text(json.dumps(about))
    monkeypatch.setattr(costs, "REFERENCE", tmp_path / "reference")
    costs.of_reference.cache_clear()
    try:
        assert set(costs.of_reference()) == {"example20 depths=4"}
        words = ["study=example20", "depths=[4]", "grid=3", f"outputs={tmp_path}/out"]
        assert in_process.run(words, monkeypatch) == 0
    finally:
        costs.of_reference.cache_clear()
