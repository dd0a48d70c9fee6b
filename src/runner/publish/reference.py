"""Reference results: the tables behind every figure, kept in git.

`outputs/reference/<scale>/<figure>/` holds the tables of the figure's runs, the parameters that all
runs share, the claims and the provenance. Every figure can be drawn from them, and a user's results
be compared with them.
"""

import argparse
import hashlib
import json
import lzma
import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from runner.cli.orders import paper_figure
from runner.core.arguments import key_values, outputs_folder
from runner.core.catalogue import figure_names, figure_study, headline, package_of, rows_of
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_readable, require_writable
from runner.publish.restamping import restamp
from runner.results.claims import claims_of, judge
from runner.results.comparison import fault
from runner.results.figures import as_png, drawn, header_of, is_current, publish, save
from runner.results.findings import DOT
from runner.results.paper_figures import PaperFigure
from runner.results.style import drawn_in
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE, fingerprint
from runner.runs.run import load

AGES = ("scale", "rule", "rule_commit", "run_commits")
"""Columns of kept claims: what came first, the rule or the numbers, when they were kept."""
SAID = ("expected", "verdict", "measured")
"""Columns of kept claims that another rule changes."""

FROM_REFERENCE = "figures-from-reference"
"""The folder in that of outputs where figures of the reference are drawn."""

LARGE = 200_000
"""Bytes from which a table is kept compressed."""


def canonical_figure(name: str, typed: list[str]) -> PaperFigure:
    """Return the figure that the reference knows.

    Raises InputError when the overrides make another one, or do not compose.
    """
    figure = paper_figure(name, typed)
    if not figure.is_canonical:
        overrides = " ".join(figure.overrides)
        raise InputError(f"the reference has {name} as it is, not with {overrides}")
    return figure


def kept_figure(
    folder: Path, outputs: Path = Path("outputs"), style: str = "screen"
) -> PaperFigure:
    """Return the figure whose tables a folder of the reference has, to be drawn in `outputs`."""
    name, scale = folder.name, folder.parent.name
    what = headline("figure", name)
    return PaperFigure(name, scale, name, (), (), outputs, what, style, FROM_REFERENCE)


def keep(name: str, typed: list[str], reference: Path) -> Path:
    """Copy what stands behind a drawn figure into the reference; return the folder.

    Raises InputError when the overrides make another figure than the canonical one, it is not drawn
    from its runs as they are now, rows of its tables are missing or twice, or its verdicts are not
    those that its tables give.
    """
    figure = canonical_figure(name, typed)
    if not is_current(figure):
        raise InputError(f"{name} is not drawn yet at scale {figure.scale}: {figure.command}")
    folder = reference / figure.scale / name
    new = reference / f".{figure.scale}-{name}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        _write(figure, new)
        check_kept(new, name, figure.study)
    except BaseException:
        shutil.rmtree(new)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    return new.rename(folder)


def check_kept(folder: Path, name: str, study: str) -> None:
    """Raise InputError unless a figure's kept tables are whole, and its verdicts follow from them.

    folder: of the figure, in the reference.
    """
    tables = read_tables(folder)
    for table, row_class in rows_of(study).items():
        if table in tables and (wrong := fault(tables[table], row_class)):
            raise InputError(f"{name}: {table}: {wrong}")
    judged, kept = judge(name, claims_of(name, study), tables), pd.read_csv(folder / "claims.csv")
    said = [each[["claim", *SAID]].fillna("").to_numpy().tolist() for each in (judged, kept)]
    if said[0] != said[1]:
        wrong = next(a or b for a, b in zip_longest(*said) if a != b)
        raise InputError(f"{name}: {wrong[0]}: the kept tables give {wrong[2]}, not what was kept")


def _write(figure: PaperFigure, folder: Path) -> None:
    """Write the tables of a figure's runs into a folder, and what else is kept of it."""
    row_classes = rows_of(figure.study)
    shared: dict[str, dict[str, Any]] = {}
    for table, rows in load(figure.runs).items():
        columns = {field.name for field in fields(row_classes[table])} | {"run"}
        same = [name for name in rows if name not in columns and rows[name].nunique() == 1]
        shared[table] = rows[same].iloc[0].to_dict() if len(rows) else {}
        content = rows.drop(columns=same).to_csv(index=False).encode()
        if len(content) > LARGE:
            compressed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
            write_atomically(folder / f"{table}.csv.xz", compressed)
        else:
            write_atomically(folder / f"{table}.csv", content)
    write_atomically(folder / "shared.json", json.dumps(shared, indent=1).encode())
    for file in ("claims.csv", "caption.txt", "provenance.json"):
        write_atomically(folder / file, figure.path(file).read_bytes())


def keep_benchmarks(measured: Path, reference: Path) -> list[Path]:
    """Copy the benchmarks that were measured, each study's in place of its old ones."""
    kept = []
    (reference / "bench").mkdir(parents=True, exist_ok=True)
    for path in sorted([*measured.glob("*.csv"), *measured.glob("*.json")]):
        kept.append(reference / "bench" / path.name)
        write_atomically(kept[-1], path.read_bytes())
    return kept


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of one figure's reference."""
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    del paths["claims"]
    shared = json.loads((folder / "shared.json").read_text())
    return {name: pd.read_csv(path).assign(**shared[name]) for name, path in paths.items()}


def draw_all(reference: Path, outputs: Path, style: str = "screen") -> Iterator[Path]:
    """Draw every figure of the reference, at every scale; yield its PNG.

    style: as of `publish`. Raises InputError when a claim now comes out otherwise than it was kept.
    """
    for folder in sorted(path.parent for path in reference.glob("*/*/claims.csv")):
        figure = kept_figure(folder, outputs, style)
        now = publish(figure, read_tables(folder))
        write_atomically(figure.path("provenance.json"), (folder / "provenance.json").read_bytes())
        write_atomically(figure.path("drawn-from"), drawn_from(folder).encode())
        if list(now["verdict"]) != list(pd.read_csv(folder / "claims.csv")["verdict"]):
            raise InputError(f"{folder}: the claims judged now are not those that were kept")
        yield figure.path("png")


def picture(folder: Path, outputs: Path) -> Path:
    """Return the PNG of a figure of the reference; draw it unless it is there, up to date.

    folder: of the figure. Beside the picture stand `<figure>.body.png`, without its header, and
    `<figure>.header.json`, the words of it. Raises what the drawing raises where the tables are not
    those that the code of today draws.
    """
    figure, now = kept_figure(folder, outputs), drawn_from(folder)
    files = [figure.path(end) for end in ("png", "body.png", "header.json", "drawn-from")]
    place, _, words, source = files
    if not (all(map(Path.exists, files)) and source.read_text() == now):
        tables = read_tables(folder)
        above = header_of(figure, tables, pd.read_csv(folder / "claims.csv"))
        place.parent.mkdir(parents=True, exist_ok=True)
        with drawn_in("screen"):
            drawing, _ = drawn(figure, tables, above)
            save(drawing, place.with_suffix(""), ("png", "body.png"))
        write_atomically(words, above.as_json())
        write_atomically(source, now.encode())
    return place


def drawn_png(folder: Path, dpi: float | None = None, note: str = "") -> bytes:
    """Return the picture of a figure of the reference with its header, from what is kept of it.

    note: ends the header's first line.
    """
    figure, tables = kept_figure(folder), read_tables(folder)
    above = header_of(figure, tables, pd.read_csv(folder / "claims.csv"))
    above = replace(above, what=DOT.join(filter(None, (above.what, note))))
    return as_png(figure, tables, above, dpi)


def drawn_from(folder: Path) -> str:
    """Digits that change with a figure of the reference, tables and claims, and its drawing's code.

    The text of `<figure>.drawn-from`, which stands beside a picture.
    """
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.csv*"), folder / "shared.json"]):
        digest.update(path.name.encode() + path.read_bytes())
    return f"{digest.hexdigest()[:16]} {_drawing_code(figure_study(folder.name))}"


@cache
def _drawing_code(study: str) -> str:
    return fingerprint({f"{package_of(study)}.figures"})


def judge_all(reference: Path) -> None:
    """Judge the claims of every figure anew over its kept tables; print what changed."""
    for path in sorted(reference.glob("*/*/claims.csv")):
        name = path.parent.name
        claims = claims_of(name, figure_study(name))
        judged = judge(name, claims, read_tables(path.parent))
        judged = _aged(judged, pd.read_csv(path))
        content = judged.to_csv(index=False).encode()
        if content != path.read_bytes():
            write_atomically(path, content)
            print(path)


def _aged(judged: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Claims judged anew, with what is kept of the ages of their rules.

    What comes out otherwise than it was kept, or was not kept, is judged by a rule that is younger
    than the numbers.
    """
    if "rule" not in kept:
        return judged
    aged = judged.merge(kept[["claim", *AGES]], on="claim", how="left")
    before = kept.set_index("claim").reindex(judged["claim"])[[*SAID]].fillna("").to_numpy()
    differs = (judged[[*SAID]].fillna("").to_numpy() != before).any(axis=1)
    aged.loc[differs, "rule"] = "after"
    return aged


def main(arguments: list[str]) -> int:
    """Keep what was made, draw or judge all figures of the reference, or restamp it; returns 0.

    Raises InputError when an override is wrong, or a claim comes out otherwise than it was kept.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner reference",
        description="keep: take what was made into the reference. draw: draw all figures from it."
        " judge: judge all its claims anew, after a judge was changed. restamp: say that kept runs"
        " are of today's code, where that computes at scale smoke the bytes of theirs; after it the"
        " folders of outputs that theirs has computed.",
    )
    parser.add_argument("what", choices=("keep", "draw", "judge", "restamp"))
    keys = "scale=..., outputs=...; of draw: outputs=..., style=...; of restamp: FOLDER outputs=..."
    parser.add_argument("overrides", nargs="*", metavar="key=value", help=keys)
    options = parser.parse_args(arguments)
    if options.what == "keep":
        require_readable(paper_figure(figure_names()[0], options.overrides).outputs)
        _keep_all(options.overrides)
        return 0
    if options.what == "judge":
        judge_all(REFERENCE)
        return 0
    if options.what == "restamp":
        pairs = [word for word in options.overrides if "=" in word]
        before = [Path(word) for word in options.overrides if "=" not in word]
        for line in restamp(REFERENCE, before, outputs_folder(pairs)):
            print(line)
        return 0
    if any("=" not in word for word in options.overrides):
        raise InputError(
            "`reference draw` draws all kept figures and takes no name."
            " To see one: runner show fig4"
        )
    values = key_values(options.overrides, ["outputs", "style"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    require_writable(outputs, outputs / FROM_REFERENCE)
    for path in draw_all(REFERENCE, outputs, values.get("style", "screen")):
        print(path)
    return 0


def _keep_all(typed: list[str]) -> None:
    """Keep all figures that are drawn, and all benchmarks; say which figures are left out."""
    for name in figure_names():
        try:
            print(keep(name, typed, REFERENCE))
        except InputError as error:
            print(f"left out: {' '.join(str(error).splitlines())}", file=sys.stderr)
    typed_folder = [text for text in typed if text.startswith("outputs=")]
    for path in keep_benchmarks(outputs_folder(typed_folder) / "bench", REFERENCE):
        print(path)
