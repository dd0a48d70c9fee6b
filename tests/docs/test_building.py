"""What docs/building.md says can be done from an empty folder is done from it alone."""

import re

import warm
from repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "building.md").read_text()


def test_all_that_the_page_shows_works_in_an_empty_folder(tmp_path):
    printed = []
    for kind, block in re.findall(r"```(sh|python|yaml)\n(.*?)```", PAGE, re.S):
        if name := re.match(r"# (\w+\.\w+)\n", block):
            (tmp_path / name[1]).write_text(block)
            continue
        (tmp_path / "block.py").write_text(block)
        lines = {"python": ["python block.py"], "sh": block.splitlines()}.get(kind, [])
        for line in lines:
            done = warm.run_line(line, cwd=tmp_path)
            assert done.returncode == 0, (line, done.stderr)
            printed.append(done.stdout)
    text = "\n".join(printed)
    assert (tmp_path / "fig4.pdf").exists() and (tmp_path / "example20.pdf").exists()
    assert "batch/width=16/replicate=0" in text and "Linear(in_features=64" in text
    assert re.search(r"none/width=16 +0\.0 +\d.*\n +1\.0 +\d.*\n +2\.0 +\d", text), "by epoch"
    assert "value_mean" not in text and r"\pm" in text and "train_accuracy_mean" in text
