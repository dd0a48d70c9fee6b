"""A figure at a scale: its runs, its picture, its caption and its claims.

A figure is canonical if its runs are the runs of the command `figure=<figure> scale=<scale>`,
without changed parameters. All others have another name, `<figure>-<hash>`, so that no figure
overwrites another.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from matplotlib.figure import Figure as MplFigure

from runner.core.catalogue import (
    figure_study,
    judges,
    package_of,
    part_of,
    rows_of,
    title_of,
)
from runner.core.errors import InputError
from runner.core.shell import command
from runner.results import claims
from runner.results.captions import caption
from runner.results.drawing import DOT, Drawing, Header, counted, draw, drawing_of
from runner.results.finishing import fit, found, place, save, settle, shrink
from runner.results.formats import Format, drawn_in
from runner.results.labels import names_module, names_of
from runner.results.looks import looks_of
from runner.results.preregistration import register, registered
from runner.results.rows import Tables
from runner.results.style import Look, Picture, as_bytes
from runner.results.united import unite, united_seeds
from runner.results.verdicts import lines as verdict_lines
from runner.runs.files import read, require_replaceable, write_atomically
from runner.runs.provenance import REFERENCE, fingerprint
from runner.runs.run import Run, absent_in_stale, load, stale_note
from runner.runs.tables import sha256_of

FILES = ("png", "pdf", "svg", "body.png", "header.json", "csv", "claims.csv", "caption.txt")
"""Endings of the files of a figure, in addition to its provenance. `png` has the header above the
picture; `body.png` has none. A page that shows `body.png` writes the texts of `header.json` above
it. These two are in the folder `parts`."""


@dataclass(frozen=True)
class Figure:
    """A figure at a scale, with its runs.

    - figure: the figure's name;
    - overrides: the parameters `key=value` that the user typed; none for the canonical figure;
    - style: `screen`, `paper`, or the path of a style file.

    Many methods have an argument `tables`. By default they read the tables of the runs, and raise
    InputError if a run is missing or damaged.
    """

    figure: str
    scale: str
    overrides: tuple[str, ...]
    runs: tuple[Run, ...]
    """The runs behind the figure, which may not be complete."""
    outputs: Path
    style: str = "screen"

    folder_name: ClassVar[str] = "figures"
    """The folder for the figure's files, within the folder of outputs."""

    def __repr__(self) -> str:
        return f"<figure {self.name} at scale {self.scale}: {len(self.runs)} runs>"

    @property
    def is_canonical(self) -> bool:
        """Return whether the figure has the runs of the command without changed parameters."""
        return not self.overrides

    @cached_property
    def name(self) -> str:
        """Return the name of the figure's files.

        With typed parameters it is `<figure>-<hash>`, with eight digits of a hash of the runs'
        keys.
        """
        if self.is_canonical:
            return self.figure
        names = json.dumps(sorted(run.key for run in self.runs))
        return f"{self.figure}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"

    @cached_property
    def study(self) -> str:
        """Return the name of the study whose runs are drawn."""
        return self.runs[0].config.study if self.runs else figure_study(self.figure)

    @property
    def title(self) -> str:
        """Return the title of the figure: "paper B, figure 1: ranks by depth".

        If it names a value of a parameter that the user changed, such as VGG-19, it names the new
        value instead.
        """
        text, names = title_of("figure", self.figure), names_of(self.study)
        for key, _, value in (word.partition("=") for word in self.overrides):
            for listed in (names.value(key, known) for known in names.listed(key)):
                if not listed.islower() and "," not in value:  # a proper name
                    pattern = rf"(?<!\w){re.escape(listed)}(?!\w)"
                    text = re.sub(pattern, lambda _: names.value(key, value), text)  # noqa: B023
        return text

    @cached_property
    def drawing(self) -> Drawing:
        """Return how the figure is drawn. Raises InputError if the study does not draw it."""
        return drawing_of(self.figure, self.study)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments that make the figure, without settings that change no number."""
        return f"figure={self.figure}", f"scale={self.scale}", *self.overrides

    def path(self, end: str) -> Path:
        """Return the path of a file of the figure, `<outputs>/figures/<scale>/<name>.<end>`.

        Files that only the program reads are in the folder `parts` there, see `finishing.place`.
        """
        return place(self.stem, end)

    @property
    def stem(self) -> Path:
        """Return the paths of the figure's files without their endings."""
        return self.outputs / self.folder_name / self.scale / self.name

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of all runs by name. Each table has the rows of all runs.

        If runs differ only in their seed, a seed and a replicate are one network (see
        `results.united`). Raises InputError if a run is missing or damaged.
        """
        return unite(load(self.runs), self.runs)

    def judge(self, tables: Tables | None = None) -> pd.DataFrame:
        """Judge the figure's claims; return a table with a row for each claim.

        The columns are `claims.COLUMNS`: statement, rule, verdict, numbers and others. At scale
        `smoke` no claim fails, since the experiments are too small to refute a statement.
        """
        listed = claims.claims_of(self.figure, self.study)
        tables = self.tables() if tables is None else tables
        with self._of_todays_columns():
            judged = claims.judge(self.name, listed, tables)
        too_small = {} if judges(self.scale) else {"fails": "undecided"}
        return judged.replace({"verdict": too_small})

    def header(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> Header:
        """Return the two lines above the picture: what it shows, and what was found.

        judged: the result of `judge` for these tables; None: judge now.
        """
        tables = self.tables() if tables is None else tables
        judged = self.judge(tables) if judged is None else judged
        title = self.title or self.name
        return self.drawing.header(title, tables, judged, self.scale, self.overrides)

    def caption(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> str:
        """Return the caption, the text below the picture in a paper.

        judged: the result of `judge` for these tables; None: judge now.
        """
        drawing, tables = self.drawing, self.tables() if tables is None else tables
        judged = self.judge(tables) if judged is None else judged
        read = {name: rows for name, rows in tables.items() if name not in drawing.unread}
        about = (self.study, read, self.scale, self.overrides, drawing.shown(read))
        words = partial(drawing.description, study=self.study)
        verdicts, code = counted(judged), self.other_code()
        return caption(self.title or self.name, words, *about, verdicts=verdicts, code=code)

    def other_code(self) -> str:
        """Return a phrase with the commits of runs that today's code does not compute, or ""."""
        return ""

    def draw(
        self,
        tables: Tables | None = None,
        style: str | None = None,
        *,
        size: str = "",
        series: str | Sequence[str] = (),
        where: str = "",
        header: bool = True,
    ) -> MplFigure:
        """Return the picture. Call `savefig` on it to save it in the chosen style.

        - style: `screen`, `paper`, or the path of a style file; by default the figure's style.
        - size: `column`, `page`, or inches: `"3.3x4"`, or `"3.3"` for a width.
        - series: the names of the series to draw, as in the tables: `["sgd"]`, or one name; empty:
          all.
        - where: a condition on the rows to draw: `"width <= 200"`.
        - header: False draws no header. Only the style `screen` without a size has a header.

        Raises InputError for an unknown style, size, series or column, and for a style file that
        cannot be read.
        """
        form = Format(style or self.style, size, header)
        series = [series] if isinstance(series, str) and series else series
        return self.drawn(tables, form=form, series=series, where=where)[0]

    def numbers(self, tables: Tables | None = None) -> pd.DataFrame:
        """Return the table of the drawn numbers, the content of `<figure>.csv`."""
        return self.drawn(tables)[1]

    def part(self, tables: Tables, series: Sequence[str] = (), where: str = "") -> Tables:
        """Return the tables with only the rows of some series that also meet a condition.

        series, where: as in `draw`. Raises InputError as `draw` does.
        """
        if not series and not where:
            return tables
        from runner.results.parts import meeting, of_series  # late: most figures are drawn whole

        if series:
            keys = {key for row_class in rows_of(self.study).values() for key in row_class.keys}
            tables = of_series(tables, series, self.drawing.shows, keys)
        return meeting(tables, where) if where else tables

    def changed(self, series: Sequence[str] = (), where: str = "") -> "Figure":
        """Return a copy of the figure whose header and caption say that only a part is drawn.

        series, where: the part, as in `draw`.
        """
        words = [f"series={'+'.join(series)}"] if series else []
        words += [f"where {where}"] if where else []
        return replace(self, overrides=(*self.overrides, *words))

    def drawn(
        self,
        tables: Tables | None = None,
        header: Header | None = None,
        form: Format | None = None,
        series: Sequence[str] = (),
        where: str = "",
    ) -> tuple[MplFigure, pd.DataFrame]:
        """Draw the picture; return it with the drawn numbers, the table of `<figure>.csv`.

        tables: by default the tables of the runs. header: by default the result of the method
        `header`. form: the style and the size; by default the figure's style. series, where: as in
        `draw`.
        """
        tables, form = self.tables() if tables is None else tables, form or Format(self.style)
        tables, changed = self.part(tables, series, where), self.changed(series, where)
        with drawn_in(form, self.looks(tables)), self._of_todays_columns():
            try:
                header = header or changed.header(tables)
                picture, numbers = draw(self.drawing, tables)
            except (LookupError, ValueError, ArithmeticError) as error:
                if changed == self:
                    raise
                words = ", ".join(changed.overrides)
                why = f"{type(error).__name__}: {error}"
                raise InputError(
                    f"{self.figure} cannot be drawn with {words}: it needs more rows ({why})"
                ) from error
            settle(picture)
            if isinstance(picture, Picture) and form.has_header:
                picture.add_header(header.what, header.finding)
            elif isinstance(picture, Picture):
                if form.size:
                    fit(picture)
                shrink(picture)
        return picture, numbers

    @contextmanager
    def _of_todays_columns(self) -> Iterator[None]:
        """Raise InputError in place of an error about a table or column that stale runs lack."""
        try:
            yield
        except (LookupError, AttributeError, NameError) as error:
            absent = absent_in_stale(self.runs) & {*re.findall(r"\w+", str(error))}
            if not absent:
                raise
            anew = command(*self.arguments, "stale=recompute", outputs=self.outputs)
            raise InputError(
                f"{self.name} cannot be drawn: its runs are of other code, and their tables lack"
                f" {', '.join(sorted(absent))}\nThis computes them anew: {anew}"
            ) from error

    def require_style(self) -> None:
        """Raise InputError if the style is unknown, or its file cannot be used."""
        Format(self.style).colors({})

    def looks(self, tables: Tables) -> dict[str, Look]:
        """Return the looks of the figure's series, by the names that a style file has for them.

        Series are the values in text columns of the tables. The list DRAWN_BY in the study's
        `figures.py` names further columns, which the drawing computes.
        """
        names, looks = names_of(self.study), dict[str, Look]()
        for column in getattr(part_of(self.study, "figures"), "DRAWN_BY", ()):
            looks |= looks_of(names.values[column])
        for rows in tables.values():
            for column in {*names.values} & {*rows}:
                known = looks_of(names.values[column])
                looks |= {value: known[value] for value in rows[column].unique() if value in known}
        return {str(name).replace(" ", "_"): look for name, look in looks.items()}

    def png(self, note: str = "") -> bytes:
        """Return the picture as the content of a PNG file.

        note: a text that is added to the first line of the header.
        """
        tables = self.tables()
        header = self.header(tables)
        header = replace(header, what=DOT.join(filter(None, (header.what, note))))
        return as_bytes(self.drawn(tables, header)[0])

    def save(self, tables: Tables | None = None) -> pd.DataFrame:
        """Draw the picture, judge the claims and write all FILES; return the judged claims.

        Raises InputError if the style is unknown, or a file cannot be written.
        """
        require_replaceable(*map(self.path, (*FILES, "sums.json", "provenance.json")))
        tables = self.tables() if tables is None else tables
        judged = self.judge(tables)
        with self._of_todays_columns():
            header, caption = self.header(tables, judged), self.caption(tables, judged)
        folder = self.stem.parent
        try:
            picture, numbers = self.drawn(tables, header)
            self.path("header.json").parent.mkdir(parents=True, exist_ok=True)
            save(picture, self.stem)
            write_atomically(self.path("header.json"), header.as_json())
            write_atomically(self.path("csv"), numbers.to_csv(index=False).encode())
            write_atomically(self.path("claims.csv"), judged.to_csv(index=False).encode())
            write_atomically(self.path("caption.txt"), caption.encode())
            write_atomically(self.path("sums.json"), json.dumps(self._sums()).encode())
        except OSError as error:
            raise InputError(f"{folder} cannot be written ({error.strerror})") from error
        return judged

    def make(self) -> str:
        """Save the figure and its provenance; return a report for the terminal.

        The report has the verdicts on the claims and the path of the picture. Raises InputError if
        a run is missing or damaged, or the folder cannot be written.
        """
        try:
            tables = self.tables()
        except InputError as error:
            this = command(*self.arguments, outputs=self.outputs)
            raise InputError(f"{error}\nThis computes them: {this}") from error
        provenance = self.provenance()
        judged = self.save(tables)
        content = json.dumps(provenance, indent=2).encode()
        write_atomically(self.path("provenance.json"), content)
        words = (self.figure, f"scale={self.scale}", *self.overrides)
        lines = [f"{', '.join(words)}: {self.title}".removesuffix(": ")]
        keys = [word.lstrip("+").partition("=")[0] for word in self.overrides]
        lines += verdict_lines(judged, self.path("claims.csv"), self.scale, keys)
        if len(judged):
            lines.append(f"rules and sources: {command('claims', *words)}")
        if self.is_canonical and (REFERENCE / self.scale / self.figure).is_dir():
            compare = command("compare", *words, outputs=self.outputs)
            lines.append(f"compare with the reference: {compare}")
        if seeds := united_seeds(self.runs):
            lines.append(f"note: {len(seeds)} seeds: all verdicts are exploratory")
        elif late := self._with_late_rules(judged):
            lines.append(f"note: exploratory, as no rule was stored before the numbers: {late}")
        if provenance["stale"]:
            lines.append(f"note: {provenance['stale']}")
        return "\n".join([*lines, str(self.path("png"))])

    def _with_late_rules(self, judged: pd.DataFrame) -> str:
        """Return the claims whose rules were not registered before the runs; "" at scale smoke."""
        rules = self.registered_rules
        late = [row.claim for row in judged.itertuples() if rules.get(row.claim) != row.digest]
        named = "all verdicts" if len(late) == len(judged) > 1 else ", ".join(late)
        return named if judges(self.scale) else ""

    def register_rules(self) -> None:
        """Write the digests of the claims' rules into a file, before the runs are computed.

        With several seeds there are none: seeds could be added until a statement holds.
        """
        listed = [] if united_seeds(self.runs) else claims.claims_of(self.figure, self.study)
        rules = {claim.name: claim.digest for claim in listed}
        register(self.path("rules.json"), rules, self.runs, self.registered_rules)

    @property
    def registered_rules(self) -> dict[str, str]:
        """Return the digest of each rule that was registered before the runs, by claim."""
        return registered(found(self.stem, "rules.json"), self.runs)

    def provenance(self) -> dict[str, Any]:
        """Return the origin of the figure: its command, runs, seconds, seeds and registered rules.

        Each run has its commit, its machine and its time. The entry `rules` has the digest of each
        rule that was registered before the runs were computed.
        """
        runs = [describe(run) for run in self.runs]
        seconds = [run["seconds"] for run in runs if isinstance(run["seconds"], int | float)]
        return {
            "figure": self.figure,
            "scale": self.scale,
            "command": command(*self.arguments),
            "overrides": list(self.overrides),
            "runs": runs,
            "style": self.style,
            "stale": stale_note(self.runs),
            "seconds": round(sum(seconds), 3),
            "seeds": sorted({run.config.seed for run in self.runs}),
            "rules": self.registered_rules,
            "program": program_of(self.figure, self.study),
        }

    def is_current(self) -> bool:
        """Return whether the figure's files exist, made in its style from the present runs.

        The code that draws and judges must be the same, too.
        """
        keys = ("run", "tables", "stale")
        try:
            about = json.loads(read(self.path("provenance.json")))
            made = (about["scale"], about["style"], about["program"])
            is_same = made == (self.scale, self.style, program_of(self.figure, self.study))
            sides = (about["runs"], map(describe, self.runs))
            before, now = ([[run[key] for key in keys] for run in runs] for runs in sides)
        except (OSError, ValueError, KeyError, TypeError, InputError):
            return False
        return is_same and before == now and self._is_whole()

    def _sums(self) -> dict[str, str]:
        """Return the SHA-256 of each of the figure's files, by its ending."""
        return {end: sha256_of(self.path(end)) for end in FILES}

    def _is_whole(self) -> bool:
        """Return whether all files are as the program has written them.

        Of a figure that version 2.0 made, without checksums, the files must only exist.
        """
        try:
            if not self.path("sums.json").exists():
                return all(self.path(end).exists() for end in FILES)
            return json.loads(read(self.path("sums.json"))) == self._sums()
        except (OSError, ValueError):
            return False

    def not_drawn(self) -> str:
        """Return a warning about values of typed parameters that the figure does not draw.

        The text is empty if the figure draws all of them. Raises InputError if the figure has no
        drawing.
        """
        typed = {word.partition("=")[0] for word in self.overrides}
        names: dict[str, set[str]] = {
            column: set()
            for column in self.drawing.shows
            if typed & {column, f"{column}s", "experiment"}
        }
        for config in (run.config for run in self.runs):
            for column in names:
                value = getattr(config, column, None) or getattr(config, f"{column}s", None) or []
                names[column] |= {value} if isinstance(value, str) else set(value)
        absent = self.drawing.left_out(names)
        only = "only the tables of its runs have its numbers"
        return f"{self.figure} does not draw {absent}: {only}" if absent else ""


@cache
def program_of(figure: str, study: str) -> str:
    """Return sixteen digits that change with the code that draws and judges a figure, or its title.

    The code is `figures.py`, `claims.py` and the printed names of the study and its paper, and this
    module, with everything that they import. Raises InputError as `package_of` does.
    """
    package = package_of(study)
    own = {name for part in ("figures", "claims") if find_spec(name := f"{package}.{part}")}
    code = fingerprint({__name__, *own, *filter(None, [names_module(package)])})
    return hashlib.sha256(f"{code} {title_of('figure', figure)}".encode()).hexdigest()[:16]


RUN_FACTS = (
    "started", "ended", "seconds", "cpu_seconds", "peak_memory_bytes", "commit", "dirty", "code",
    "device", "device_name", "instructions", "threads", "versions",
)  # fmt: skip
"""The entries of a run's provenance that a figure's provenance repeats."""


def describe(run: Run) -> dict[str, Any]:
    """Return what a figure's provenance says about a run: name, origin, checksums of its tables.

    Raises InputError if the run is not complete.
    """
    about = run.provenance()
    facts = {key: about.get(key) for key in RUN_FACTS} | {"stale": run.is_stale()}
    tables = {name: table["sha256"] for name, table in run.result["tables"].items()}
    return {"run": run.name, **facts, "tables": tables}
