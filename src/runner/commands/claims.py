"""All claims with their rules, digests and seeds, before anything is computed."""

import argparse
from collections.abc import Iterable

import pandas as pd

from runner.compose.orders import paper_figure
from runner.core.catalogue import figure_names, figure_study, paper_folder, scale_in
from runner.core.errors import InputError, nearest
from runner.core.papers import paper_of
from runner.core.studies import StudyConfig
from runner.results.claims import Claim, claims_of


def plan(figure: str, typed: list[str]) -> str:
    """Return the claims of a figure with their rules, margins and planned numbers, as text.

    typed: further overrides (`scale=paper`). Raises InputError when they do not compose.
    """
    planned = paper_figure(figure, typed)
    study, configs = planned.study, [run.config for run in planned.runs]
    paper = paper_of(paper_folder(study)).letter
    lines = [
        f"{figure}: paper {paper}, study {study}, scale {planned.scale}",
        f"  planned: {_planned(configs)}",
    ]
    for claim in claims_of(figure, study):
        lines += _lines(claim)
    return "\n".join(lines)


def _planned(configs: list[StudyConfig]) -> str:
    """Return how many runs, and how many independent repetitions each."""
    counts = {}
    for name in ("replicates", "selection_replicates", "chains", "layers"):
        held = (getattr(config, name, None) for config in configs)
        values = sorted({value for value in held if isinstance(value, int)})
        if values:
            counts[name] = " or ".join(map(str, values))
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    data = " ".join(sorted({getattr(config, "data", "synthetic") for config in configs}))
    seeds = " and ".join(map(str, sorted({config.seed for config in configs})))
    runs = f"{len(configs)} run" + "s" * (len(configs) > 1)
    return f"{runs} on {data}, seed {seeds}" + (f", {said}" if said else "")


def _lines(claim: Claim) -> list[str]:
    """Return a claim as it is before any data."""
    lines = [
        f"  {claim.name}: {claim.statement}  [{claim.attribution}]",
        f"      rule: {claim.printed}  ({claim.digest})",
    ]
    if claim.needs:
        lines.append(f"      needs: {needed(claim)}")
    return lines


def needed(claim: Claim) -> str:
    """Return the sizes that a claim needs, in words."""
    return ", ".join(f"{count} values of {name}" for name, count in claim.needs.items())


def rules(figures: Iterable[str] = ()) -> pd.DataFrame:
    """Return the printed rules of figures, or all, with digests: `outputs/reference/rules.csv`."""
    rows = [
        (name, claim.name, claim.printed, needed(claim), claim.digest)
        for name in figures or figure_names()
        for claim in claims_of(name, figure_study(name))
    ]
    return pd.DataFrame(rows, columns=["figure", "claim", "rule", "needs", "digest"])


def main(arguments: list[str]) -> int:
    """Print the claims of all figures, or of those named; computes nothing; returns 0.

    Raises InputError when a figure does not exist or an override is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner claims",
        description="All statements with their rules, the digests of these, seeds and planned"
        " numbers; computes nothing. One test for all: a claim holds, or fails, when that verdict"
        " is wrong with a probability of at most 5 %; otherwise it is undecided.",
    )
    parser.add_argument("words", nargs="*", metavar="figure or key=value", help="fig4, scale=paper")
    words = parser.parse_args(arguments).words
    names = [word for word in words if "=" not in word]
    for name in names:
        if name not in figure_names():
            raise InputError(f"no figure is called {name!r}; {nearest(name, figure_names())}")
    typed = [word for word in words if "=" in word]
    scale = scale_in(typed)
    print("\n\n".join(plan(name, typed) for name in names or figure_names(scale)))
    return 0
