"""Which runs are meant: by study, status and parameters, or one run by the end of its name."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from runner.core.catalogue import configs
from runner.core.errors import InputError, nearest
from runner.core.studies import StudyConfig
from runner.runs.inventory import STATUSES, Found, describe, find
from runner.runs.run import UNNAMED, Run, readable


@dataclass(frozen=True)
class Selection:
    """What the options of `runs` choose: runs of any of the studies, in any of the statuses, where
    each parameter has one of its values; empty: of all.

    where: a parameter and the text of its value, or of several, as they are typed (`depth=8,16`).
    stale: only complete runs of other code.
    """

    studies: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    stale: bool = False

    @property
    def words(self) -> list[str]:
        """The options that choose this."""
        words = [word for study in self.studies for word in ("--study", study)]
        words += [word for status in self.statuses for word in ("--status", status)]
        words += [word for name, text in self.where for word in ("--where", f"{name}={text}")]
        return [*words, "--stale"] if self.stale else words

    def choose(self, found: Sequence[Found]) -> list[Found]:
        """Those of the runs that are meant.

        Raises InputError for a study, a status or a parameter that does not exist.
        """
        self._check(found)
        return [each for each in found if self._means(each)]

    def _check(self, found: Sequence[Found]) -> None:
        present = {each.study for each in found}
        for study in self.studies:
            if study not in (known := {*present, *configs()}):
                raise InputError(f"study={study} is not known: {nearest(study, known)}")
        for status in self.statuses:
            if status not in STATUSES:
                raise InputError(f"--status {status} is not known: {nearest(status, STATUSES)}")
        studies = set(self.studies or present) & set(configs()) or set(configs())
        known = {item.name for study in studies for item in fields(configs()[study])}
        for name, _ in self.where:
            if name not in known:
                of = f" of {' or '.join(sorted(self.studies))}" if self.studies else ""
                raise InputError(f"{name} is not a parameter{of}: {nearest(name, known)}")

    def _means(self, each: Found) -> bool:
        if self.studies and each.study not in self.studies:
            return False
        if self.statuses and each.status not in self.statuses:
            return False
        if self.stale and not each.is_stale:
            return False
        return all(
            hasattr(each.config, name) and is_one_of(getattr(each.config, name), text)
            for name, text in self.where
        )


def parse_where(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Parameters and the texts of their values. Raises InputError for what is not key=value."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise InputError(f"--where {name}{equals}{value}: key=value is needed, as in depth=32")
    return tuple((name, value) for name, _, value in pairs)


def is_one_of(value: Any, text: str) -> bool:
    """Whether a parameter has the value that is typed, or one of several: `8,16`, `[a,b],[a]`."""
    if not isinstance(value, list):
        return any(_is(value, each.strip()) for each in text.split(","))
    lists = [each.split(",") for each in text.strip("[]").split("],[")]
    return any(
        len(value) == len(each) and all(map(_is, value, map(str.strip, each))) for each in lists
    )


def _is(value: Any, text: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return value == (int(text) if text.lstrip("-").isdigit() else float(text))
        except ValueError:
            return False
    return _text(value) == text


def _text(value: Any) -> str:
    """A value as it is typed on the command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"[{','.join(map(_text, value))}]" if isinstance(value, list) else str(value)


def differing(runs: Sequence[Run]) -> list[str]:
    """The parameters in which runs of one study differ, in the order of the study."""
    names = [item.name for item in fields(runs[0].config) if item.name not in UNNAMED]
    return [name for name in names if len({_text(getattr(run.config, name)) for run in runs}) > 1]


def titles(configs: Sequence[StudyConfig], shared: bool = True) -> list[str]:
    """What each of these runs is called in the company of the others: what differs comes first.

    A parameter is named where it is not at its default; in a sweep, where others of the runs differ
    in it alone, even there. shared: whether what all have in common follows; without it the study
    is named where there are several.
    """
    studies = {config.study for config in configs}
    found: dict[int, str] = {}
    for study in studies:
        some = [(i, config) for i, config in enumerate(configs) if config.study == study]
        named = _titles([config for _, config in some], shared)
        if len(studies) > 1 and not shared:
            named = [f"{study} {title}" if len(some) > 1 else study for title in named]
        found |= dict(zip([i for i, _ in some], named, strict=True))
    return [found[i] for i in range(len(configs))]


def _titles(configs: Sequence[StudyConfig], shared: bool) -> list[str]:
    """As `titles`, for runs of one study."""
    names = [item.name for item in fields(configs[0]) if item.name not in UNNAMED]
    texts = [{name: readable(getattr(config, name)) for name in names} for config in configs]
    differ = [name for name in names if len({each[name] for each in texts}) > 1]

    def company(each: dict[str, str], name: str) -> tuple[str, ...]:
        return (name, *(each[other] for other in differ if other != name))

    swept: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for each, name in product(texts, differ):
        swept[company(each, name)].add(each[name])
    found = []
    for config, each in zip(configs, texts, strict=True):
        given = [name for name in config.identity() if name in names]
        first = [name for name in differ if name in given or len(swept[company(each, name)]) > 1]
        rest = [name for name in given if name not in differ] if shared or not first else []
        found.append(",".join(f"{name}={each[name]}" for name in (*first, *rest)) or "(defaults)")
    return found


def choosing(runs: Sequence[Run], found: Sequence[Found]) -> Selection:
    """A short selection that chooses these runs, of one study, out of those that are found.

    It chooses others too where no parameter by itself tells them apart.
    """
    study, folders = runs[0].config.study, {run.folder for run in runs}
    others = [each.config for each in found if each.study == study and each.folder not in folders]
    others = [config for config in others if config is not None]
    swept = differing(runs)
    names = [item.name for item in fields(runs[0].config) if item.name not in UNNAMED]
    where = []
    for name in sorted(names, key=lambda name: name not in swept):
        values = [getattr(run.config, name) for run in runs]
        left = [config for config in others if getattr(config, name) in values]
        if len(left) < len(others):
            where.append((name, ",".join(dict.fromkeys(map(_text, values)))))
            others = left
    return Selection((study,), where=tuple(where))


def named(text: str, outputs: Path) -> Found:
    """The one run that a text names: its folder, its name, its hash, or how one of these begins.

    Raises InputError where it names none, or several.
    """
    folder = Path(text)
    if (folder / "config.yaml").exists():
        return describe(folder.resolve())
    found = find(outputs)
    for names in (_whole_names, _beginnings):
        fits = [each for each in found if any(names(each, text))]
        if len(fits) == 1:
            return fits[0]
        if fits:
            listed = ", ".join(f"{each.study} {each.hash8}" for each in fits[:5])
            raise InputError(f"{text} names {len(fits)} runs: {listed}{', ...' * (len(fits) > 5)}")
    raise InputError(
        f"{text} names no run under {outputs}: a folder, its name, or the hash at its end is needed"
    )


def _whole_names(each: Found, text: str) -> list[bool]:
    name = each.folder.name
    return [name == text, f"{each.study}/{name}" == text, each.hash8 == text]


def _beginnings(each: Found, text: str) -> list[bool]:
    name = each.folder.name
    return [whole.startswith(text) for whole in (name, f"{each.study}/{name}", each.hash8)]
