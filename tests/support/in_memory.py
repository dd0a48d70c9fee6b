"""Rows, tables and verdicts of a study, without a run's folder."""

from dataclasses import asdict
from functools import lru_cache

import pandas as pd
import torch
from bench.growth import embedded

from runner.commands.kept import read_tables
from runner.core.catalogue import figure_study, module_of
from runner.core.progress import Progress
from runner.core.studies import Context, Row, StudyConfig
from runner.results.claims import claims_of, judge
from runner.runs.provenance import REFERENCE


def context(restored=None, checkpoint=lambda make_state: None, dataset=embedded) -> Context:
    """Return the context of a study outside a run."""
    return Context(torch.device("cpu"), restored, Progress, checkpoint, dataset)


def rows_of(config: StudyConfig, table: str | None = None, **options) -> list[Row]:
    """Return the rows of a study, of one table or of all. options: arguments of `context`."""
    rows = module_of(config.study).run(config, context(**options))
    return [row for row in rows if table in (None, row.table)]


def tables_of(config: StudyConfig, **options) -> dict[str, pd.DataFrame]:
    """Return the tables of a study by name."""
    tables: dict[str, list[dict]] = {}
    for row in rows_of(config, **options):
        tables.setdefault(row.table, []).append(asdict(row))
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def kept_tables(figure: str, scale: str = "quick") -> dict[str, pd.DataFrame]:
    """Return the tables of a figure in the reference, for a test to change."""
    return {name: table.copy() for name, table in _kept(figure, scale).items()}


@lru_cache(maxsize=8)  # a test has its figures one after another
def _kept(figure: str, scale: str) -> dict[str, pd.DataFrame]:
    return read_tables(REFERENCE / scale / figure)


def judged(figure: str, tables: dict[str, pd.DataFrame], *names: str) -> pd.DataFrame:
    """Return the judged claims about a figure, from these tables.

    names: the claims; without names, all claims.
    """
    claims = claims_of(figure, figure_study(figure))
    claims = [claim for claim in claims if not names or claim.name in names]
    return judge(figure, claims, tables).set_index("claim")


def verdicts(figure: str, tables: dict[str, pd.DataFrame], *names: str) -> dict[str, str]:
    """Return the verdicts on a figure's claims from these tables, by the claims' names.

    The arguments are as in `judged`.
    """
    return judged(figure, tables, *names)["verdict"].to_dict()
