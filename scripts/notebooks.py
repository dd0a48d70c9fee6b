"""Execute the notebooks of the documentation.

python scripts/notebooks.py [scale=quick] [jobs=2] [outputs=outputs]

The notebooks in docs/notebooks have no outputs, since outputs depend on the machine. Executed
notebooks are written to `<outputs>/notebooks`, for the pages of `make docs`. Their runs are stored
in `<outputs>/runs` like all others.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

from runner.core.arguments import key_values
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_writable
from runner.runs.provenance import REPOSITORY

NOTEBOOKS = REPOSITORY / "docs" / "notebooks"


def execute(notebook: Path, outputs: Path, scale: str, jobs: int) -> nbformat.NotebookNode:
    """Return the notebook with its outputs.

    outputs: the folder of outputs. scale: the scale of the runs. jobs: how many runs are computed
    side by side. Raises CellExecutionError if a cell raises an exception.
    """
    content = nbformat.read(notebook, as_version=4)
    settings = {"SCALE": scale, "JOBS": str(jobs), "OUTPUTS": str(outputs.resolve())}
    with TemporaryDirectory() as sockets:  # sockets as files, so that no port conflicts
        transport = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        client = NotebookClient(
            content,
            config=Config({"KernelManager": transport}),
            coalesce_streams=True,
            resources={"metadata": {"path": outputs}},
        )
        return client.execute(env=os.environ | settings)


def main(arguments: list[str]) -> int:
    """Execute all notebooks; return 0, or 1 if a cell failed, or 2 if an argument is wrong."""
    try:
        values = key_values(arguments, ["scale", "jobs", "outputs"])
        scale, jobs = values.get("scale", "quick"), values.get("jobs", "2")
        if not jobs.isdecimal():
            raise InputError(f"jobs={jobs} is not a number of runs side by side")
        outputs = outputs_at(values.get("outputs", "outputs"))
        require_writable(outputs, outputs / "notebooks")
        for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
            print(f"executes {notebook.relative_to(REPOSITORY)}", flush=True)
            executed = execute(notebook, outputs, scale, int(jobs))
            nbformat.write(executed, outputs / "notebooks" / notebook.name)
    except (InputError, CellExecutionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
