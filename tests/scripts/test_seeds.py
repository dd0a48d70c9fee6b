"""The table of what other seeds say."""

import json

import pandas as pd
import pytest
import seeds

KEPT = pd.DataFrame(
    {
        "figure": "fig4",
        "claim": ["one", "two", "three", "ours"],
        "statement": ["a | b", "c", "d", "e"],
        "kind": ["paper", "paper", "paper", "ours"],
        "verdict": ["holds", "holds", "undecided", "holds"],
        "measured": ["1", "2", "3", "4"],
        "data": "digits",
        "runs": "some",
        "digest": ["x", "y", "z", "w"],
    }
)


def drawn(outputs, overrides, **changed):
    folder = outputs / "figures" / "quick"
    folder.mkdir(parents=True)
    about = {"figure": "fig4", "overrides": overrides, "command": "runner figure=fig4"}
    (folder / "fig4-1a2b3c4d.provenance.json").write_text(json.dumps(about))
    rows = KEPT.assign(figure="fig4-1a2b3c4d", **changed)
    rows.to_csv(folder / "fig4-1a2b3c4d.claims.csv", index=False)
    return outputs


@pytest.fixture
def reference(tmp_path, monkeypatch):
    folder = tmp_path / "reference"
    (folder / "quick" / "fig4").mkdir(parents=True)
    KEPT.to_csv(folder / "quick" / "fig4" / "claims.csv", index=False)
    monkeypatch.setattr(seeds, "REFERENCE", folder)
    return folder


def test_verdicts_that_differ_are_listed_and_counted(reference, tmp_path):
    other = {"verdict": ["fails", "holds", "holds", "fails"], "measured": ["9", "2", "7", "8"]}
    folders = [
        drawn(tmp_path / "one", ["seed=101"], **other),
        drawn(tmp_path / "two", ["seed=102"], digest=["x", "y", "another", "w"]),
    ]
    assert seeds.main(list(map(str, folders))) == 0
    text = seeds.changes(reference)
    assert "With seeds 101 and 102, 1 of 4 verdicts changed from *holds* to *fails*" in text
    assert "and none became undecided" in text
    assert "1 of 1 undecided verdicts changed" in text, "another rule is another statement"
    rows = [line for line in text.splitlines() if line.startswith("| `make")]
    assert rows == [
        "| `make fig4` | A \\| b. | ✓ 1 | seed 101: ✗ 9 |",
        "| `make fig4` | d. | ? 3 | seed 101: ✓ 7 |",
    ]


@pytest.mark.parametrize("overrides", [None, [], ["seed=1", "target_width=4"]])
def test_figures_made_otherwise_and_none_are_refused(overrides, reference, tmp_path, capsys):
    if overrides is not None:
        drawn(tmp_path / "other", overrides)
    assert seeds.main([str(tmp_path / "other")]) == 2
    assert "seed=" in capsys.readouterr().err
