"""What docs/building.md says can be done from an empty folder is done from it alone."""

import re

from in_process import run_line
from repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "building.md").read_text()


def test_all_that_the_page_shows_works_in_an_empty_folder(place, monkeypatch, capsys):
    """One command after another, in this process."""
    for kind, block in re.findall(r"```(sh|python|yaml)\n(.*?)```", PAGE, re.S):
        if name := re.match(r"# (\w+\.\w+)\n", block):
            (place / name[1]).write_text(block)
            continue
        (place / "block.py").write_text(block)
        lines = {"python": ["python block.py"], "sh": block.splitlines()}.get(kind, [])
        for line in lines:
            assert run_line(line, monkeypatch) == 0, (line, capsys.readouterr().err)
    text = capsys.readouterr().out
    assert (place / "fig4.pdf").exists() and (place / "example20.pdf").exists()
    assert "batch/width=16/replicate=0" in text and "Linear(in_features=64" in text
    assert re.search(r"none/width=16 +0\.0 +\d.*\n +1\.0 +\d.*\n +2\.0 +\d", text), "by epoch"
    assert "value_mean" not in text and r"\pm" in text and "train_accuracy_mean" in text
