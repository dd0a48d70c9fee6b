"""Every study at scale smoke: its rows are what it says they are, and it has a quick look."""

import pytest
from in_process import composed

from runner.core.studies import configs, rows_of
from runner.results.figures import quick_look
from runner.runs.execution import execute
from runner.runs.run import Run


@pytest.mark.parametrize("study", sorted(configs()))
def test_a_study_yields_the_rows_that_it_describes(study, tmp_path):
    settings, config = composed(f"study={study}", "scale=smoke", "device=cpu")
    run = Run(config, tmp_path)
    execute(run, settings)
    classes = rows_of(study)
    for name, table in run.tables().items():
        row_class = classes[name]
        columns = [field for field in row_class.__dataclass_fields__ if field != "keys"]
        assert list(table.columns) == columns
        assert set(row_class.keys) <= set(columns), "keys name columns"
        assert not table.duplicated(list(row_class.keys)).any(), f"{name}: keys are not unique"
    assert quick_look(run).strip()
    assert (run.folder / "overview.png").stat().st_size > 5000
