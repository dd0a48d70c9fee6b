"""Help texts: `runner --help` and `runner study=<name> --help`."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner.core.catalogue import (
    SCALES,
    config_of,
    configs,
    figure_names,
    figure_study,
    package_of,
    rows_of,
    settings_of,
    sizes,
    studies,
    title_of,
)
from runner.core.choices import kind_of
from runner.core.errors import InputError, nearest
from runner.core.settings import Settings
from runner.core.shell import command
from runner.core.studies import LIMITS, column_meanings, column_types, default_of
from runner.results.labels import names_of

EXAMPLES = """\
  runner study=bn_only target_width=7 sparsity=0.37 scale=smoke
  runner -m study=bn_only target_width=5,10,15
  runner figure=fig4 scale=smoke style=paper
  runner figure=fig4 hydra/launcher=slurm-cpu"""

ALONE = """\
Name a study or a figure to compute something.

  runner show fig4             show figure 4 of paper A with its verdicts, without computing
  runner show                  list the figures that can be shown
  runner figure=rank-fig3b     compute a small figure (seconds)
  runner study=rank_collapse   run a study with its defaults
  runner --help                list everything"""
"""The text that `runner` prints if it is called without arguments."""

SHARED = {
    "replicate": "number of the replicate (independent repetition), from 0",
    "learning_rate": "learning rate of the training",
    "epoch": "number of completed passes over the training images",
}
"""Descriptions of columns that many tables have."""

FIRST = (
    "scale", "outputs", "device", "threads", "force", "style", "data_folder", "keep_weights",
)  # fmt: skip
"""The settings that the help of a study describes. It only names the others."""

TYPED = ("study", "figure")
"""The settings that every command types: no help is needed."""

RARE = ("checksums",)
"""Parameters that the help of a study only names."""

ALL = "all"
"""The word behind `--help` with which the help of a study describes everything."""

HYDRA = {
    "-m, --multirun": "compute a sweep: one run for each value (key=1,2,3)",
    "--dry-run": "list the runs that a command would compute, and how long they take",
    "--config-dir FOLDER": "folder with your own studies and experiments",
    "-sc install=bash": "print the completion script for bash (or zsh, fish)",
    "--version": "print the version of this program",
    "--help all": "with study=...: describe all parameters and settings, also the rarely used",
    "--columns": "with study=...: list the columns of its tables with type and meaning",
    "--cfg job": "print the configuration without computing",
    "--hydra-help": "list Hydra's own flags",
}


def text(words: list[str], subcommands: Mapping[str, str]) -> str:
    """Return the help text of the study that the arguments name, or of the whole command.

    words: the arguments. For a figure, the help is about its study. With `--columns`, the columns
    of the study's tables are described. subcommands: what each subcommand does, by its name. Raises
    InputError if there is no such study or figure.
    """
    chosen = dict(word.partition("=")[::2] for word in words)
    study = figure_study(chosen["figure"]) if "figure" in chosen else chosen.get("study")
    if study is None:
        return _of_command(subcommands)
    return columns(study) if "--columns" in words else of_study(study, words)


def meant(word: str, subcommands: Iterable[str]) -> InputError:
    """Return the error for a first argument that is not a command, with a hint on what to type.

    word: the argument. subcommands: the names of all subcommands.
    """
    if word in figure_names():
        see, compute = command("show", word), command(f"figure={word}")
        return InputError(f"{word} is a figure. To see it: {see}. To compute it: {compute}")
    if word in studies():
        run = command(f"study={word}")
        return InputError(f"{word} is a study. To run it: {run}. Its parameters: {run} --help")
    classes: list[type] = [Settings, *configs().values()]
    if word in {item.name for keys in classes for item in dataclasses.fields(keys)}:
        return InputError(f"{word} is a key: write {word}=value")
    hint = nearest(word, [*figure_names(), *studies(), *subcommands])
    hint = hint if hint.startswith("did") else "see runner --help for all of them"
    return InputError(f"{word} is not a command, a figure or a study: {hint}")


def of_study(study: str, words: Iterable[str] = ()) -> str:
    """Return the help text of a study: each key with its type, default, range and meaning.

    words: settings `key=value`, in addition to the defaults. Parameters that have no effect with
    them, and rarely used keys, are only named; the word `all` describes the latter, too. Raises
    InputError if there is no such study.
    """
    config = config_of(study)
    values = {item.name: str(default_of(item)) for item in dataclasses.fields(config)}
    values |= dict(word.partition("=")[::2] for word in words)
    figure = values.pop("figure", "")
    settings = {f"{name}={value}" for name, value in values.items()}
    without = {name for setting in settings for name in config.unused.get(setting, ())}
    other = []
    if config.unused:
        more = ", ".join(sorted({*config.unused} - settings))
        other = [
            f"Parameters without effect here: {', '.join(sorted(without))}\n"
            f"Other parameters apply with {more}: add the setting to this command"
        ]
    rare = [] if ALL in words else [*_rare(config)]
    listed = ", ".join(name for name in rare if name not in TYPED)
    more = f"Rarely used: {listed}\nWhat they mean: {command(f'study={study}', '--help', ALL)}"
    parts = [
        f"usage: runner {f'figure={figure}' if figure else f'study={study}'} [key=value ...]",
        f"{title_of('study', study)}\nCode: {package_of(study).replace('.', '/')}",
        *([_of_figure(figure)] if figure else []),
        "Parameters (they change the numbers):\n" + _keys(config, sizes(study), {*without, *rare}),
        *other,
        "Settings (they do not change the numbers; device and threads change their rounding):\n"
        + _keys(Settings, {}, rare),
        *([more] if rare else []),
        f"Tables: {command(f'study={study}', '--columns')}",
    ]
    return "\n\n".join(parts)


def _of_figure(figure: str) -> str:
    """Return the title of a figure, and the parameters that it sets, also those at each scale."""

    def listed(values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {_value(value)}" for name, value in values.items())

    own = settings_of(figure)
    grids = own.pop("grids", None)
    lines = [title_of("figure", figure), f"It sets: {listed(own)}"] if own else []
    for scale, runs in grids.items() if isinstance(grids, dict) else ():
        if isinstance(runs, list):  # not a reference to another scale
            lines.append(f"At scale {scale}: {'; and '.join(map(listed, runs))}")
    return "\n".join(lines or [title_of("figure", figure)])


def _rare(config: type) -> Iterator[str]:
    """Yield the rarely used parameters of a study, then the rarely used settings."""
    yield from (item.name for item in dataclasses.fields(config) if item.name in RARE)
    yield from (item.name for item in dataclasses.fields(Settings) if item.name not in FIRST)


def columns(study: str) -> str:
    """Return as text the columns of each table of a study, with their types and meanings.

    Raises InputError if there is no such study.
    """
    helps = {item.name: item.metadata["help"] for item in dataclasses.fields(config_of(study))}
    parts = []
    for table, row_class in rows_of(study).items():
        lines = [f"{table}.csv: {' '.join(str(row_class.__doc__).split())}"]
        meanings = column_meanings(row_class)
        for name, kind in column_types(row_class).items():
            key = " (key)" if name in row_class.keys else ""
            about = meanings[name] or (helps | SHARED).get(name) or helps.get(f"{name}s", "")
            if (printed := names_of(study).column(name)) != name.replace("_", " "):
                about += f"; printed as {printed}"
            lines.append(f"  {name}: {kind.__name__}{key}\n      {about}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _keys(dataclass: type, sizes: dict[str, dict[str, Any]], without: Iterable[str] = ()) -> str:
    return "\n".join(
        f"  {item.name}: {'; '.join(_facts(item, sizes))}\n      {item.metadata['help']}"
        for item in dataclasses.fields(dataclass)
        if item.name not in without
    )


def _facts(item: dataclasses.Field, sizes: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield facts about a key: type, default, values at the scales, and range."""
    if item.type is Any:  # Hydra knows no union with a list
        yield "bool | list[float]"
    else:
        yield item.type.__name__ if isinstance(item.type, type) else str(item.type)
    yield f"default {_value(default_of(item))}"
    sized = {scale: sizes[scale][item.name] for scale in sizes if item.name in sizes[scale]}
    if sized:
        by_scale = (f"{scale} {_value(sized[scale])}" for scale in SCALES if scale in sized)
        yield f"at scale {', '.join(by_scale)}"
    limits = item.metadata
    for name, (words, _) in LIMITS.items():
        if limits[name] is not None:
            yield f"{words} {limits[name]}"
    if limits["choices"] is not None:
        of_torch = ", torch.optim:AdamW" * (kind_of(limits["choices"]) == "optimizer")
        several = "list" in str(item.type)
        yield f"{'chosen from' if several else 'one of'} {', '.join(limits['choices'])}{of_torch}"
    if limits["own"]:
        yield "or your function, module:function"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list) else str(value)


def _of_command(subcommands: Mapping[str, str]) -> str:
    """Return the help text of the command: studies, scales, figures, examples, flags."""
    parts = [
        "usage: runner [-m] [study=...] [scale=...] [figure=...] [key=value ...]\n"
        f"       runner {'|'.join(subcommands)} ...",
        "Studies (study=...; their parameters: runner study=<name> --help):\n"
        + _listing({name: title_of("study", name) for name in studies()}),
        "Scales (scale=...):\n" + _listing(SCALES),
        "Figures (figure=...):\n"
        + _listing({name: title_of("figure", name) for name in figure_names()}),
        "Examples:\n" + EXAMPLES,
        "Subcommands (each with --help):\n" + _listing(subcommands),
        "Flags:\n" + _listing(HYDRA),
    ]
    return "\n\n".join(parts)


def _listing(entries: Mapping[str, str]) -> str:
    width = max(map(len, entries), default=0)
    return "\n".join(f"  {name:<{width}}  {about}" for name, about in entries.items())
