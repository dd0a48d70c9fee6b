"""Compare the verdicts with other seeds with the verdicts in the reference.

    runner figures seed=101 outputs=outputs/seed-101
    python scripts/seeds.py outputs/seed-101 outputs/seed-102

Writes the verdicts on the figures in these folders, at scale `quick`, to
`outputs/reference/seeds.csv`. `make gallery` writes a table of the verdicts that differ.
"""

import json
import re
import sys
from pathlib import Path

import pandas as pd

from runner.commands.kept import read_csv
from runner.commands.report import VERDICTS, capital
from runner.core.errors import InputError
from runner.results.claims import distinct
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE

SCALE, FILE = "quick", "seeds.csv"
COLUMNS = ["seed", "figure", "claim", "digest", "verdict", "measured"]
DECIDED = {"holds", "fails"}


def verdicts(outputs: Path) -> pd.DataFrame:
    """Return the verdicts on the figures in a folder of outputs, with their seed.

    Raises InputError if there are no figures, or if one was not made with `seed=...` alone.
    """
    frames = []
    for path in sorted((outputs / "figures" / SCALE).glob("*.provenance.json")):
        about = json.loads(path.read_text())
        overrides = about["overrides"]  # where the data lie changes no number
        match [word for word in overrides if not word.startswith("data_folder=")]:
            case [word] if word.startswith("seed="):
                seed = int(word.removeprefix("seed="))
            case _:
                raise InputError(f"{path}: made by {about['command']}, not with seed=... alone")
        claims = pd.read_csv(path.with_name(path.name.replace("provenance.json", "claims.csv")))
        frames.append(claims.assign(seed=seed, figure=about["figure"])[COLUMNS])
    if not frames:
        raise InputError(f"no figures in {outputs} at scale {SCALE}: runner figures seed=N")
    return pd.concat(frames)


def beside(reference: Path) -> pd.DataFrame:
    """Return pairs of verdicts on the papers' statements: in the reference, and with another seed.

    A row has the columns of claims, with `seed`, the other seed, and its results `other` and
    `other_measured`. Statements that were judged by an older rule are excluded.
    """
    kept = pd.concat(read_csv(path) for path in (reference / SCALE).glob("*/claims.csv"))
    judged = distinct(kept[kept["kind"] == "paper"])
    names = {"verdict": "other", "measured": "other_measured"}
    others = read_csv(reference / FILE).rename(columns=names)
    return judged.merge(others, on=["figure", "claim", "digest"])


def changes(reference: Path) -> str:
    """Return how many verdicts change with another seed, and a Markdown table of the changes."""
    rows = beside(reference)
    decided = rows[rows["verdict"].isin(DECIDED)]
    changed = rows[rows["verdict"] != rows["other"]]
    lost = changed["verdict"].isin(DECIDED)
    turned = (lost & changed["other"].isin(DECIDED)).sum()
    *others, last = sorted(rows["seed"].unique())
    seeds = f"seeds {', '.join(map(str, others))} and {last}" if others else f"seed {last}"
    one = "one of these seeds" if others else "this seed"
    open_rows, opened = len(rows) - len(decided), len(changed) - lost.sum()
    lines = [
        f"With {seeds}, {turned or 'none'} of {len(decided)} verdicts changed from *holds* to"
        f" *fails* or the reverse, and {lost.sum() - turned or 'none'} became undecided. With"
        f" {one}, {opened or 'none'} of {open_rows} undecided verdicts changed to"
        " *holds* or *fails*.",
        "",
        "| command | statement | stored verdict | other seed |",
        "| --- | --- | --- | --- |",
    ]
    for row in changed.sort_values(["figure", "claim", "seed"]).itertuples():
        kept = f"{VERDICTS[row.verdict]} {row.measured}"
        numbers = re.split(r": (?=[−\d])", str(row.other_measured), maxsplit=1)[-1]
        there = f"seed {row.seed}: {VERDICTS[row.other]} {numbers}"
        cells = (f"`make {row.figure}`", f"{capital(row.statement).rstrip('.')}.", kept, there)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def main(folders: list[str]) -> int:
    """Write the verdicts in these folders to a file; return 0, or 2 if there are none."""
    try:
        if not folders:
            raise InputError("name the folders of outputs that other seeds were drawn in")
        table = pd.concat(verdicts(Path(folder)) for folder in folders)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    table = table.sort_values(["seed", "figure", "claim"])
    write_atomically(REFERENCE / FILE, table.to_csv(index=False).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
