"""A sweep: the runs of one study with their tables, and what their picture shows.

    sweep = Sweep(runs)
    plot = sweep.choose()                     # the headline numbers of the study
    plot = sweep.choose("depth", ["matrix_rank"], "normalization")
    plot.points                               # a row for each dot

The parameter with the most values is on the horizontal axis. The next one is shown by color, and a
third one by panels. If other parameters vary, too, seeds are replicates. The `figures.py` of a
study lists its headline numbers by column, or by table and column if several tables have the
column:

    HEADLINE = ["matrix_rank", "training.test_accuracy"]

Without this list, or if no table with the requested keys has a headline number, the first numbers
are drawn.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from runner.core.catalogue import part_of, rows_of
from runner.core.errors import InputError, nearest
from runner.core.studies import column_types
from runner.results import captions, style
from runner.results.drawing import upper
from runner.results.evidence import ERROR, replicates_needed
from runner.results.labels import Names, names_of
from runner.results.parts import meeting
from runner.results.rows import copies, without_copies
from runner.runs.inventory import short_hash
from runner.runs.query import differing, values_of
from runner.runs.run import Run, load

MOST_NUMBERS, MOST_PANELS = 4, 4
"""Limits: headline numbers in a picture, panels in a row."""


@dataclass(frozen=True)
class SweepPlot:
    """What the picture of a sweep shows.

    - name: the name of its files, the same for the same runs.
    - x, color, panel: the columns of `points` for the horizontal axis, the color and the panels.
      Without a parameter for them, the color is `line` and the panel is `number`.
    - points: a row for each dot. `line` is the method, in words, and `by` names the columns that
      make it up; `number` is the name of the measurement, `value` its value, `run` the run. If the
      axis is within the runs, as a layer is, `curve` tells lines apart: it is the first of the runs
      that differ only in their seed. Otherwise it is empty.
    - notes: phrases about the number of runs, missing runs, and the part of the tables that is
      drawn.
    """

    study: str
    name: str
    x: str
    color: str
    panel: str
    points: pd.DataFrame
    headline: str
    notes: Sequence[str]
    caption: str
    band: bool = False
    """Whether the confidence interval of each median is drawn."""
    board: pd.DataFrame | None = None
    """The rows of a table under the picture."""


class Sweep:
    """Runs of one study, complete or not, with the tables of the complete runs."""

    def __init__(self, runs: Iterable[Run]) -> None:
        """Read the tables. Raises InputError if there are several studies, or no complete run."""
        self.runs = list({(run.folder.parent, run.identity): run for run in runs}.values())
        self.complete = [run for run in self.runs if run.is_complete()]
        studies = sorted({run.config.study for run in self.runs})
        if not self.complete or len(studies) > 1:
            listed = f"{len(self.complete)} of {', '.join(studies)}"
            raise InputError(f"a picture needs complete runs of one study; there are {listed}")
        self.study, self.tables = studies[0], load(self.complete)
        self.swept = _typed_keys(self.runs) or differing(self.runs)
        self.names = names_of(self.study)
        self.repeated = captions.repeated(self.tables)
        self.part: list[str] = []
        """Phrases about the rows that are left, such as `only plain`."""

    def numbers(self, keys: set[str]) -> dict[str, tuple[str, str]]:
        """Return the table and the column of each measurement, by its name.

        Each measurement has two names, `table.column` and `column`. If several tables have the
        column, the name `column` means the table `metrics`, or else the last of these tables. keys:
        only tables with all these keys are used.
        """
        numbers: dict[str, tuple[str, str]] = {}
        classes = sorted(rows_of(self.study).items(), key=lambda item: item[0] == "metrics")
        for table, row_class in classes:
            if table in self.tables and keys <= {*row_class.keys}:
                for name, kind in column_types(row_class).items():
                    if kind in (int, float) and name not in row_class.keys:
                        numbers[f"{table}.{name}"] = numbers[name] = table, name
        return numbers

    def only(self, methods: Sequence[str]) -> set[str]:
        """Leave out the rows of all other methods than these; return the names of all methods.

        A method is a text in a key of a table, such as `sgd`, or its printed name. Tables without
        one of the methods are left out. methods: empty: all stay.
        """
        known, left, meant = set[str](), dict[str, pd.DataFrame](), dict[str, None]()
        for table, rows in self.tables.items():
            keys = [key for key in rows_of(self.study)[table].keys if not is_number(rows[key])]
            known |= {str(value) for key in keys for value in rows[key].unique()}
            is_meant = pd.Series(False, rows.index)
            for key in keys:
                named = rows[key].map(lambda value, key=key: self.names.value(key, value))
                of_key = rows[key].isin(methods) | named.isin(methods)
                is_meant |= of_key
                meant |= dict.fromkeys(named[of_key])
            known |= {*named} if keys else set()
            left |= {table: rows[is_meant]} if is_meant.any() else {}
        if methods:
            self.tables = left
            self.part.append(f"only {joined(meant)}")
        return known

    def where(self, condition: str) -> None:
        """Leave out the rows that do not meet a condition. Raises InputError as `meeting` does."""
        self.tables = meeting(self.tables, condition)
        self.part.append(f"only where {condition}")

    def headline(self, numbers: Iterable[str]) -> list[str]:
        """Return the names of at most MOST_NUMBERS measurements to be drawn.

        They are the names in HEADLINE of the study's `figures.py`. If none of them is possible, the
        first names are used. numbers: the possible names.
        """
        named = getattr(part_of(self.study, "figures"), "HEADLINE", ())
        known = [name for name in named if name in numbers]
        return (known or [name for name in numbers if "." in name])[:MOST_NUMBERS]

    def points(self, numbers: list[str], swept: list[str], roles: list[str]) -> pd.DataFrame:
        """Return a row for each dot of some measurements, as in `SweepPlot.points`.

        numbers: the names of the measurements. swept: parameters that become columns. roles: the
        parameters or keys that are shown by the axis, the color and the panels.
        """
        values, parts = pd.DataFrame({name: self.values(name) for name in swept}), []
        measured = self.numbers(set())
        for number in numbers:
            table, column = measured[number]
            keys = rows_of(self.study)[table].keys
            added = [name for name in swept if name not in keys]
            rows = (
                self.tables[table]
                .drop(columns=added, errors="ignore")
                .join(values[added], on="run")
            )
            others = {name for of, name in measured.values() if of == table}
            rows = rows.assign(
                number=number,
                value=self.tables[table][column] * 1.0,
                copy=copies(self.tables[table], [*others]),
            )
            parts.append(_at_the_end(rows, keys, roles, self.names))
        return pd.concat(parts, ignore_index=True)

    def values(self, name: str) -> pd.Series:
        """Return the value of a parameter in each run, indexed by the name of the run's folder.

        The values are numbers if all are finite numbers, otherwise texts.
        """
        texts = values_of(self.runs, name)
        values = {run.key: text for run, text in zip(self.runs, texts, strict=True)}
        numbers = pd.to_numeric(pd.Series(values), errors="coerce")
        return numbers if np.isfinite(numbers).all() else pd.Series(values)

    def board(self, sort: str, n: int) -> pd.DataFrame:
        """Return the first n rows of `table`, ordered by a number or a parameter.

        sort: its name; with `-` before it, the largest comes first. Raises InputError if there is
        no such column.
        """
        name, numbers = sort.removeprefix("-"), self.numbers(set())
        table = self.table([name] if name in numbers else [])
        if (column := name.rpartition(".")[2]) not in table:
            hint = nearest(name, {*numbers, *self.swept})
            raise InputError(f"--sort {sort}: {self.study} has no number {name}: {hint}")
        return table.sort_values(column, ascending=name == sort, kind="stable").head(n)

    def inside(self) -> tuple[str, str]:
        """Return the table of the last headline number, and its key of steps with most values.

        The key is a number that varies within a network, such as the epoch. Both are empty if there
        is none.
        """
        numbers = self.numbers(set())
        for number in self.headline(numbers)[-1:]:
            table, _ = numbers[number]
            rows = self.tables[table]
            keys = rows_of(self.study)[table].keys
            steps = [key for key in keys if key != "replicate" and is_number(rows[key])]
            apart = ["run", *(key for key in keys if key not in steps)]
            counts = rows.groupby(apart, dropna=False)[steps].nunique().max()
            if len(counts) and counts.max() > 1:
                return table, str(counts.idxmax())
        return "", ""

    def _curves(self) -> dict[str, str]:
        """Return for each complete run the first run that differs from it at most in the seed."""
        firsts = dict[str, str]()
        others = {run.key: repr({**vars(run.config), "seed": None}) for run in self.complete}
        return {key: firsts.setdefault(text, key) for key, text in others.items()}

    def table(self, numbers: Sequence[str] = (), over_seeds: bool = False) -> pd.DataFrame:
        """Return a table with a row for each run and method.

        The columns are the parameters that differ, the median of each number at the end of the run,
        and the run's hash. numbers: names of measurements; without, the headline numbers.
        over_seeds: whether runs that differ only in the seed have one row, with the median and the
        range of their medians as text.
        """
        numbers = [*numbers] or self.headline(self.numbers(set()))
        if not numbers:
            values = pd.DataFrame({name: self.values(name) for name in self.swept})
            return (
                values.rename_axis("run")
                .reset_index()
                .assign(run=lambda t: t["run"].map(short_hash))
            )
        points = self.points(numbers, self.swept, self.swept)
        kinds = joined(", ".join(points["by"].unique()).split(", "))
        keys = [*self.swept, "line", "run", "number"]
        medians = points.groupby(keys, sort=False, dropna=False)["value"].median()
        if over_seeds:
            alike = [key for key in keys if key not in ("seed", "run")]
            medians = medians.groupby(alike, sort=False, dropna=False).agg(_with_range)
        table = medians.unstack("number", sort=False).reset_index()
        if not over_seeds:
            table["run"] = table.pop("run").map(short_hash)
        table = table.rename(columns={"line": kinds}) if kinds else table.drop(columns="line")
        short = table.columns.str.rpartition(".").get_level_values(2)
        return table.set_axis(short, axis=1) if short.is_unique else table

    def _compared(self, y: Sequence[str]) -> str | None:
        """Return the first key with several methods; None if there is none.

        y: names of measurements, of which the first one's table is asked; empty: the headline
        numbers.
        """
        numbers = self.numbers(set())
        for number in [name for name in y or self.headline(numbers) if name in numbers][:1]:
            table, _ = numbers[number]
            rows = self.tables[table]
            kinds = [key for key in rows_of(self.study)[table].keys if not is_number(rows[key])]
            return next((key for key in kinds if rows[key].nunique() > 1), None)
        return None

    def choose(self, x: str | None = None, y: Sequence[str] = (), color: str | None = None,
               band: bool = False) -> SweepPlot:  # fmt: skip
        """Return what a picture of these runs will show.

        - x, color: a parameter, or a key of a table (a layer, a method);
        - y: names of measurements;
        - band: whether medians have a band, their confidence interval.

        What is not given is chosen automatically. Raises InputError if a name does not exist, no
        measurement varies, the runs differ in more parameters than a picture can show, or there are
        too few replicates for a band.
        """
        if self.swept == ["seed"] and not (x or color):
            x = self._compared(y)
        wanted, parameters = [name for name in (x, color) if name], [*vars(self.runs[0].config)]
        numbers = self.numbers({*wanted} - {*parameters})
        known = {*parameters}.union(*(rows_of(self.study)[table].keys for table in self.tables))
        chosen = [*y] or self.headline(numbers)
        pairs = [*((name, known) for name in wanted), *((name, numbers) for name in chosen or [""])]
        for name, names in pairs:
            if name not in names:
                what = " by ".join(dict.fromkeys([name or "number", *wanted]))
                raise InputError(f"{self.study} has no {what}: {nearest(name, names)}")
        swept = [name for name in parameters if name in {*self.swept, *wanted}]
        roles = _roles(pd.DataFrame({name: self.values(name) for name in swept}), x, color)
        points = self.points(chosen, swept, roles)
        numeric = [role for role in roles if is_number(points[role])]
        groups = ["number", "line", *(role for role in roles if role not in numeric)]
        is_measured = points.groupby(groups)["value"].transform("count") > 0
        points = points.assign(curve=points["run"].map(self._curves()))
        varies = points.groupby("number")["value"].transform("nunique", dropna=False) > 1
        points = points[is_measured & (varies | bool(y))].sort_values(numeric, kind="stable")
        if points.empty:
            listed = ", ".join(chosen)
            raise InputError(f"no number of {self.study} varies with {roles[0]}: {listed}")
        points = points.assign(curve=points["curve"].where(_is_inside(points, roles[0]), ""))
        at, marks = ["number", "line", "curve", *roles], "lines" if roles[0] in numeric else "marks"
        notes, kept = self._notes(points), without_copies(points, points["copy"], at)
        once = ", where replicates with equal numbers count once" * (len(kept) < len(points))
        if networks := self._networks(kept, at):
            notes.append(f"{marks}: median of {networks}{once}, dot: one of them")
        if band:
            _require_replicates(kept, at, once)
            sure = f"{100 - 200 * ERROR:.0f}\u00a0%"
            n = captions.span(sorted({*_networks_at(kept, at)}))
            notes.append(
                f"bands: {sure} confidence interval of the median, exact for independent networks"
                f" (n\u00a0=\u00a0{n})"
            )
        keys = sorted(run.key for run in self.runs)
        identity = repr([wanted, y, keys, *self.part, *["band"] * band]).encode()
        name = f"{self.study}-{roles[0]}-{hashlib.sha256(identity).hexdigest()[:8]}"
        drawn = points["number"].str.rpartition(".")[2].unique()
        axis = self.names.column(roles[0])
        headline = upper(f"{joined(map(self.names.column, drawn))} against {axis}")
        x_column, hue, panel = [*roles, *["line", "number"][len(roles) - 1 :]]
        said = headline, notes, self._caption(headline, marks, notes)
        return SweepPlot(self.study, name, x_column, hue, panel, kept, *said, band)

    def _notes(self, points: pd.DataFrame) -> list[str]:
        """Return phrases about the number of runs and the part of the tables that is drawn."""
        missing, swept = len(self.runs) - len(self.complete), joined(map(_label, self.swept))
        runs = f"{len(self.runs)} run{'s' * (len(self.runs) > 1)}"
        runs += f" by {swept}" if swept else ""
        runs += f", {missing} missing" if missing else ""
        return [runs, *self.part, *filter(None, points["at"].unique())]

    def _caption(self, headline: str, marks: str, notes: Sequence[str]) -> str:
        """Return the caption of a picture. It has all parameters that differ from their defaults.

        The scale is named if it was typed for all runs. marks: what medians are drawn as.
        """
        words = "; ".join([f"{upper(marks)} are medians, dots single replicates", *notes])
        typed = {next((w for w in run.typed if w.startswith("scale=")), "") for run in self.runs}
        scale = typed.pop().removeprefix("scale=") if len(typed) == 1 else ""
        changes = [*captions.changes([run.config for run in self.runs])]
        about = self.study, self.tables, scale
        return captions.caption(f"{headline} ({self.study})", words, *about, settings=changes)

    def _networks(self, points: pd.DataFrame, at: list[str]) -> str:
        """Return over how many networks medians are: `9 networks (3 seeds × 3 replicates)`.

        The text is empty if each point is a single number. points, at: as in `_networks_at`.
        """
        numbers = sorted({*_networks_at(points, at)})
        runs = points.groupby(at, dropna=False)["run"].nunique().max()
        if numbers[-1] == 1 or runs == 1:
            return self.repeated if numbers[-1] > 1 else ""
        if numbers[-1] == runs:
            return f"{captions.span(numbers)} seeds"
        of = f" × {self.repeated}" if self.repeated else ""
        return f"{captions.span(numbers)} networks ({runs} seeds{of})"


def _is_inside(points: pd.DataFrame, x: str) -> pd.Series:
    """Return for each dot whether the axis x is within the runs, for the dot's measurement."""
    of_run = points.groupby(["number", "run"])[x].transform("nunique")
    return of_run.groupby(points["number"]).transform("max") > 1


def _networks_at(points: pd.DataFrame, at: list[str]) -> pd.Series:
    """Return the number of networks at each point of a picture.

    at: the columns that tell the points apart.
    """
    of_each = [name for name in ("run", "replicate") if name in points]
    networks = points[[*dict.fromkeys([*at, *of_each])]].drop_duplicates()
    return networks.groupby(at, dropna=False).size()


def _require_replicates(points: pd.DataFrame, at: list[str], once: str) -> None:
    """Raise InputError if no point has enough replicates for an interval of the median.

    points, at: as in `_networks_at`. once: the end of the message.
    """
    there, needed = _networks_at(points, at).max(), replicates_needed()
    if there < needed:
        raise InputError(
            f"--band: an interval of the median needs {needed} replicates or seeds at a point;"
            f" these runs have {there}{once}"
        )


def _typed_keys(runs: Sequence[Run]) -> list[str]:
    """Return the parameters for which several values were typed; empty if this is unknown."""
    typed = [dict(word.split("=", 1) for word in run.typed if "=" in word) for run in runs]
    if not all(typed) or len({frozenset(keys) for keys in typed}) > 1:
        return []
    several = {key for key in typed[0] if len({keys[key] for keys in typed}) > 1}
    parameters = [name for name in vars(runs[0].config) if name in several]
    return parameters if len(parameters) == len(several) else []


def _roles(values: pd.DataFrame, x: str | None, color: str | None) -> list[str]:
    """Return the parameters of the horizontal axis, of the color and of the panels."""
    swept = [name for name in values if name != "seed"] or ([] if x else [*values])
    free = [name for name in swept if name not in (x, color)]
    free.sort(key=lambda name: (not is_number(values[name]), -values[name].nunique()))
    if not (x or free):
        hint = "choose a column for the horizontal axis, as --x layer"
        raise InputError(f"the runs differ in no parameter: {hint}")
    roles = [given or free.pop(0) for given in (x, color, None) if given or free]
    if free or (len(roles) > 2 and values[roles[2]].nunique() > MOST_PANELS):
        differ = f"too many parameters for one picture: the runs differ in {', '.join(swept)}"
        part = f"choose a part, for example --where '{[*roles, *free][-1]} == ...'"
        raise InputError(f"{differ}; {part}")
    return roles


def _at_the_end(
    rows: pd.DataFrame, keys: Iterable[str], roles: Sequence[str], names: Names
) -> pd.DataFrame:
    """Return the rows of a number at the end of each network: last layer, epoch or grid point.

    Three columns are added. `line` is the method of a row in words, `by` the names of the method's
    columns, `at` the part of the table that is drawn.
    """
    apart = ["run", *(key for key in keys if key in (*roles, "replicate"))]
    keys = [key for key in keys if key not in apart]
    kinds = [key for key in keys if not is_number(rows[key]) and rows[key].nunique() > 1]
    apart += kinds  # a step that each network has chosen, as a learning rate, chooses no rows
    steps = rows.groupby(apart, dropna=False)[keys].nunique().max()
    ordered = [key for key in keys if steps[key] > 1]
    for name in ordered:
        last = rows.groupby(apart, dropna=False)[name].transform("max")
        rows = rows[(rows[name] == last) | rows[name].isna()]
    at = [f"at the last {joined(map(_label, ordered))}"] if ordered else []
    while len(kinds) > 1 and len(rows[kinds].drop_duplicates()) > len(style.PALETTE):
        kinds.remove(widest := rows[kinds].nunique().idxmax())
        at += [f"over every {_label(widest)}"]
    lines = [", ".join(map(names.value, kinds, values)) for values in rows[kinds].to_numpy()]
    rows = rows.assign(by=", ".join(kinds), line=lines, at="; ".join(at))
    columns = ["number", *roles, "by", *kinds, "line", "at", "run", "replicate", "value", "copy"]
    return rows.filter([*dict.fromkeys(columns)])


def is_number(values: pd.Series) -> bool:
    """Return whether a column has numbers."""
    return pd.api.types.is_numeric_dtype(values) and values.dtype != bool


def _label(name: str) -> str:
    return name.replace("_", " ")


def joined(names: Iterable[str]) -> str:
    """Return different names in one text; empty ones are left out."""
    return ", ".join(dict.fromkeys(filter(None, names)))


def _with_range(values: pd.Series) -> str:
    """Return the median of some numbers, of which nan is the largest, and their range."""
    ends = values.min(), values.max(skipna=False)
    return "{:.4g} ({:.4g} to {:.4g})".format(values.fillna(np.inf).median(), *ends)
