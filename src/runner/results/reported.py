"""The report of one run, as text: its numbers and files.

The preview in the run's folder is drawn again only if tables or code have changed. A complete run
is therefore printed again without matplotlib.
"""

import hashlib
import json
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from runner.core.catalogue import package_of, title_of
from runner.runs.files import read, write_atomically
from runner.runs.run import OVERVIEW, Run
from runner.runs.tables import sha256_of


def report(run: Run) -> str:
    """Return a report of a complete run as text, and draw its preview into its folder.

    The picture is `overview.png`, its caption `overview.txt`. The report has the summary and the
    paths of the run's files. If the folder cannot be written, there is no picture. Raises
    InputError if the run is missing or damaged.
    """
    files = f"{run.folder}: overview.png, overview.txt, config.yaml, run.log, provenance.json"
    tables = [f"  {name}.csv  {table['rows']} rows" for name, table in run.result["tables"].items()]
    return "\n".join([_summary(run), "", str(run), files, *tables])


def _summary(run: Run) -> str:
    """Return the printed summary of a run. Draw the preview if the folder has no current one."""
    made_of, stored = _made_of(run), run.folder / OVERVIEW
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(read(stored))
        if known["made_of"] == made_of and known["drawn"] == _drawn(run):
            return str(known["summary"])
    from runner.results.preview import described, preview, summary_of  # late: matplotlib

    png, table = preview(run)
    text = summary_of(run, table)
    with suppress(OSError):  # a complete run on a disk that is read only
        write_atomically(run.folder / "overview.png", png)
        write_atomically(run.folder / "overview.txt", described(run).encode())
        known = {"made_of": made_of, "drawn": _drawn(run), "summary": text}
        write_atomically(stored, json.dumps(known).encode())
    return text


def _drawn(run: Run) -> list[str]:
    """Return the SHA-256 of the preview and of its caption. Raises OSError if one is missing."""
    return [sha256_of(run.folder / name) for name in ("overview.png", "overview.txt")]


def _made_of(run: Run) -> str:
    """Return digits that change with the run's tables, and with files of the code that draws them.

    The files are those of this package and of the study's paper, by size and time of change.
    """
    package = find_spec(package_of(run.config.study))
    places = package.submodule_search_locations if package else None
    papers = [Path(place).parent for place in places or ()]
    files = [file for folder in (Path(__file__).parent, *papers) for file in folder.rglob("*.py")]
    stats = sorted((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)
    parts = [title_of("study", run.config.study), run.result["tables"], stats]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
