"""Find alterations of rules that would go unnoticed.

    python scripts/mutate_rules.py [study ...]

Each number in the claims and quantities of the studies is made larger by half, one at a time and
only in memory. An alteration is noticed if it changes a printed rule, or the numbers that the
stored tables of the reference give. The exit status is 1 if an alteration is not noticed.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import InspectLoader
from itertools import islice
from pathlib import Path

from reference import numbers_judged

from runner.commands.claims import rules
from runner.commands.kept import read_tables
from runner.core.catalogue import SCALES, configs, figure_names, figure_study, judges, package_of
from runner.runs.provenance import REFERENCE, source_of

WORDS = {"Claim", "ours", "illustration"}
"""Calls whose first three arguments and `note` are texts for people."""

NUMBER = re.compile(r"(?<![\w.^])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.%])")
CONDITION = re.compile(r"==|[<>]|\*\*|\d / [a-z]")

Place = tuple[int, int]
"""Line and column."""


def modules_of(study: str) -> list[str]:
    """Return the modules with the rules of a study. Each comes after the modules that it uses."""
    package = package_of(study)
    claims = ast.parse(source_of(f"{package}.claims"))
    imported = [node.module for node in ast.walk(claims) if isinstance(node, ast.ImportFrom)]
    shared = [name for name in imported if name.endswith("_claims")]
    return [f"{package}.quantities", *shared, f"{package}.claims"]


def literals(text: str) -> Iterator[tuple[Place, str, str]]:
    """Yield for each number in a module its place, the number, and the altered number.

    text: the source of the module. Numbers in texts for people are skipped: statements, sources,
    notes, docstrings.
    """
    left_out = [(place(node), place(node, end=True)) for node in words(ast.parse(text))]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if any(begin <= token.start < end for begin, end in left_out):
            continue
        if token.type == tokenize.NUMBER:
            yield token.start, token.string, altered(token.string)
        elif "STRING" in tokenize.tok_name[token.type] and CONDITION.search(token.string):
            for match in NUMBER.finditer(token.string):
                line, column = token.start
                yield (line, column + match.start()), match[0], altered(match[0])


def place(node: ast.AST, end: bool = False) -> Place:
    """Return the place where a node of the syntax tree begins, or ends if `end` is true.

    Columns are counted in characters. The code of claims is ASCII except for its texts.
    """
    return (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)


def words(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of a syntax tree that are texts for people."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in WORDS:
            yield from node.args[:3]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "note")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("nonempty", "NoRows"):
            yield node.args[-1]


def altered(number: str) -> str:
    """Return a number that is larger by half. A whole number stays whole."""
    value = float(number)
    larger = 1.5 * value if value else 0.5
    is_whole = re.fullmatch(r"\d+", number) and value
    return str(int(larger + 0.5)) if is_whole else f"{larger:g}"


def replaced(text: str, at: Place, old: str, new: str) -> str:
    """Return the text of a module in which the number `old` at a place is replaced by `new`."""
    lines = text.splitlines(keepends=True)
    line, column = lines[at[0] - 1], at[1]
    assert line[column:].startswith(old), (at, line)
    lines[at[0] - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


class Texts(dict, InspectLoader):
    """Loads modules from texts, by the modules' names."""

    get_source = dict.__getitem__


def load(texts: dict[str, str]) -> None:
    """Execute modules again, from texts instead of files. texts: by the modules' names."""
    for name in texts:
        Texts(texts).exec_module(sys.modules[name])


class Kept:
    """The rules of studies, and the numbers that they judge in the smallest stored tables.

    studies: the names of the studies.
    """

    def __init__(self, studies: list[str]) -> None:
        self.figures = [name for name in figure_names() if figure_study(name) in studies]
        folders = [
            next(
                REFERENCE / scale / name
                for scale in filter(judges, SCALES)
                if (REFERENCE / scale / name).exists()
            )
            for name in self.figures
        ]
        self.tables = {folder: read_tables(folder) for folder in folders}
        self.rules = rules(self.figures)
        self.numbers = {folder: self.judged(folder) for folder in folders}

    def judged(self, folder: Path) -> str:
        """Return the numbers that the rules of one figure judge, as text with six digits."""
        numbers = numbers_judged(folder, self.tables[folder])
        return numbers.to_csv(float_format="%.6g")

    def notices(self) -> str:
        """Return what the present rules change: `printed rule`, `numbers`, or an empty text."""
        if not rules(self.figures).equals(self.rules):
            return "printed rule"
        changed = any(self.judged(folder) != before for folder, before in self.numbers.items())
        return "numbers" if changed else ""


def mutants(studies: list[str], step: int = 1) -> Iterator[tuple[str, int, str, str, str]]:
    """Yield each alteration: module, line, old number, new number, and by what it is noticed.

    studies: the names of the studies. step: 7 alters only every seventh number of a module.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for study in configs():
        for name in modules_of(study):
            users[name].append(study)
    for name in dict.fromkeys(name for study in studies for name in modules_of(study)):
        texts = {m: source_of(m) for study in users[name] for m in modules_of(study)}
        for module in texts:
            import_module(module)
        kept = Kept(users[name])
        for at, old, new in islice(literals(texts[name]), 0, None, step):
            try:
                load(texts | {name: replaced(texts[name], at, old, new)})
                noticed = kept.notices()
            except Exception as error:  # of whatever kind: it does not pass unseen
                noticed = f"error: {type(error).__name__}"
            yield name, at[0], old, new, noticed
        load(texts)


def main(studies: list[str]) -> int:
    """Print the alterations that are not noticed, and counts; return 1 if there are any, else 0."""
    counts: Counter[str] = Counter()
    for name, line, old, new, noticed in mutants(studies or list(configs())):
        counts[noticed or "nothing"] += 1
        if not noticed:
            code = source_of(name).splitlines()[line - 1].strip()
            print(f"{name}:{line}: {old} -> {new}: {code}", flush=True)
    print(", ".join(f"{count} by {what}" for what, count in counts.most_common()))
    return int(counts["nothing"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
