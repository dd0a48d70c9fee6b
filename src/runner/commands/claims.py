"""The command `runner claims`: all claims with their rules, tests and seeds. Computes nothing."""

import argparse
import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pandas as pd

from runner.compose.orders import paper_figure
from runner.core.catalogue import (
    figure_names,
    figure_study,
    named_figures,
    package_of,
    paper_folder,
    scale_in,
)
from runner.core.papers import paper_of
from runner.core.studies import StudyConfig
from runner.results.claims import Claim, claims_of

REPEATED = ("replicates", "selection_replicates", "chains", "layers")
"""Parameters that say how often a run repeats its experiment."""


def plan(name: str, typed: list[str]) -> str:
    """Return as text the claims about a figure, their rules, and the runs that will judge them.

    name: the figure's name. typed: further arguments, such as `scale=paper`. Raises InputError if
    the arguments do not fit the figure.
    """
    figure = paper_figure(name, typed)
    letter = paper_of(paper_folder(figure.study)).letter
    paper = f"paper {letter}, " if letter else ""
    lines = [
        f"{name}: {paper}study {figure.study}, scale {figure.scale}",
        f"  planned: {_runs_in_words([run.config for run in figure.runs])}",
    ]
    for claim in claims_of(name, figure.study):
        lines.append(f"  {claim.name}: {claim.statement}  [{claim.attribution}]")
        lines.append(f"      rule: {claim.printed} ({claim.tests})")
        lines.append(f"      in: {_place(claim, figure.study)}")
        lines += [f"      needs: {needed(claim)}"] if claim.needs else []
    return "\n".join(lines)


def _place(claim: Claim, study: str) -> str:
    """Return the file with the rule of a claim, and the line of its name if the name is there."""
    path, here = Path(inspect.getfile(import_module(f"{package_of(study)}.claims"))), Path.cwd()
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    numbers = [f":{number}" for number, line in lines if f'"{claim.name}"' in line]
    path = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{path}{''.join(numbers[:1])}"


def _runs_in_words(configs: list[StudyConfig]) -> str:
    """Return the number of runs, their data and seeds, and how often each is repeated."""
    data = sorted({getattr(config, "data", "synthetic") for config in configs})
    seeds = sorted({config.seed for config in configs})
    words = f"{len(configs)} run{'s' if len(configs) > 1 else ''} on {' '.join(data)}, "
    words += f"seed {' and '.join(map(str, seeds))}"
    for name in REPEATED:
        values = [getattr(config, name, None) for config in configs]
        if counts := sorted({value for value in values if isinstance(value, int)}):
            words += f", {' or '.join(map(str, counts))} {name.replace('_', ' ')}"
    return words


def needed(claim: Claim) -> str:
    """Return in words how many different values of which columns a claim needs."""
    return ", ".join(f"{count} values of {name}" for name, count in claim.needs.items())


def rules(figures: Iterable[str] = ()) -> pd.DataFrame:
    """Return a table with a row for each claim: figure, name, printed rule, needs and digest.

    It is the content of `outputs/reference/rules.csv`. figures: their names; empty: all figures.
    """
    rows = [
        (name, claim.name, claim.printed, needed(claim), claim.digest)
        for name in figures or figure_names()
        for claim in claims_of(name, figure_study(name))
    ]
    return pd.DataFrame(rows, columns=["figure", "claim", "rule", "needs", "digest"])


def main(arguments: list[str]) -> int:
    """Print the claims about the named figures, or about all figures; compute nothing; return 0.

    Raises InputError if a figure does not exist or an argument is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="runner claims",
        description="List all statements with their rules, statistical tests, seeds and planned"
        " numbers; compute nothing. All claims are tested alike: the verdict holds or fails is"
        " given if it is wrong with a probability of at most 5 %; otherwise a claim is undecided.",
    )
    parser.add_argument("words", nargs="*", metavar="figure or key=value", help="fig4, scale=paper")
    names, typed = named_figures(parser.parse_args(arguments).words)
    print("\n\n".join(plan(name, typed) for name in names or figure_names(scale_in(typed))))
    return 0
