"""Tables in Markdown."""

from collections.abc import Iterable, Sequence

from runner.commands.report import NBSP


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """Return a table in Markdown. right: how many of the last columns are right-aligned."""
    lines = [heads, ["---"] * (len(heads) - right) + ["--:"] * right]
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" %", f"{NBSP}%")
