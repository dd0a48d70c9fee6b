"""The text of `python -m runner --help`, and of `python -m runner study=<name> --help`."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from runner.cli.catalogue import SCALES, figure_names, figure_study, headline, sizes
from runner.cli.settings import CommandSettings
from runner.core.errors import InputError, nearest
from runner.core.rooms import configs, package_of
from runner.core.studies import StudyConfig, default_of

EXAMPLES = """\
  python -m runner study=bn_only target_width=7 sparsity=0.37 scale=smoke
  python -m runner -m study=bn_only target_width=5,10,15
  python -m runner figure=fig4 scale=smoke
  python -m runner figure=fig4 style=paper
  python -m runner figure=fig4 hydra/launcher=slurm-cpu submit_only=true
  python -m runner study=bn_only --help"""

ALONE = """\
Nothing is computed without a study or a figure.

  runner show fig4             see figure 4 of paper A with its verdicts; computes nothing
  runner show                  list the figures that can be seen
  runner figure=rank-fig3b     compute a small figure: seconds
  runner study=rank_collapse   run a study with its defaults
  runner --help                list everything"""
"""What `runner` says without a word."""

SUBCOMMANDS = {
    "show": "a figure as the reference has it: verdicts and picture; computes nothing",
    "runs list|check|diff|export|clean": "the runs of an outputs folder",
    "figures": "all figures, or those named, with a summary",
    "report": "a gallery of all figures and claims; computes nothing",
    "reference keep|draw|judge|restamp": "the tables behind every figure, kept in git",
    "claims": "all statements with their rules and planned numbers; computes nothing",
    "compare": "where your results differ from the reference by more than chance",
    "new study": "a working study of one's own, to be changed",
}

HYDRA = {
    "-m, --multirun": "a sweep over all values that are given (key=1,2,3)",
    "--config-dir FOLDER": "studies and experiments of one's own, in a folder",
    "-sc install=bash": "print what makes bash (or zsh) complete keys and options",
    "--cfg job": "show the configuration that would be run",
    "--hydra-help": "Hydra's own flags",
}


def text(arguments: list[str]) -> str:
    """The help that the arguments ask for: of a study, or of the command."""
    chosen = dict(argument.partition("=")[::2] for argument in arguments)
    study = chosen.get("study")
    if "figure" in chosen:
        if chosen["figure"] not in figure_names():
            hint = nearest(chosen["figure"], figure_names())
            raise InputError(f"figure={chosen['figure']} is not known: {hint}")
        study = figure_study(chosen["figure"])
    return _of_command() if study is None else of_study(study)


def meant(word: str) -> InputError:
    """What to type in place of a word that is no command, as an error to be raised."""
    if word in figure_names():
        see, compute = f"runner show {word}", f"runner figure={word}"
        return InputError(f"{word} is a figure. To see it: {see}. To compute it: {compute}")
    if word in configs():
        run = f"runner study={word}"
        return InputError(f"{word} is a study. To run it: {run}. Its parameters: {run} --help")
    classes = (CommandSettings, *configs().values())
    if word in {item.name for each in classes for item in dataclasses.fields(each)}:
        return InputError(f"{word} is a key: write {word}=value")
    commands = {name.partition(" ")[0] for name in SUBCOMMANDS}
    hint = nearest(word, [*figure_names(), *configs(), *commands])
    hint = hint if hint.startswith("did") else "all of them: runner --help"
    return InputError(f"{word} is no command, figure or study: {hint}")


def of_study(study: str) -> str:
    """All keys of a study, each with type, default, range and help text.

    Raises InputError when there is no such study.
    """
    package = package_of(study)
    config_class = configs()[study]
    sized = {scale: sizes(study).get(scale, {}) for scale in SCALES}
    parts = [
        f"usage: python -m runner study={study} [key=value ...]",
        f"{(config_class.__doc__ or '').strip()}\nCode: {package.replace('.', '/')}",
        "Parameters, which change the numbers:\n" + _keys(config_class, sized),
        "Settings, which do not:\n" + _keys(CommandSettings, {}),
    ]
    return "\n\n".join(parts)


def _keys(dataclass: type, sizes: dict[str, dict[str, Any]]) -> str:
    lines = []
    for item in dataclasses.fields(dataclass):
        lines.append(f"  {item.name}: {'; '.join(_facts(item, sizes))}")
        lines.append(f"      {item.metadata['help']}")
    return "\n".join(lines)


def _facts(item: dataclasses.Field, sizes: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Type, default, values at the scales that have their own, and range of one key."""
    yield item.type.__name__ if isinstance(item.type, type) else str(item.type)
    yield f"default {_value(default_of(item))}"
    own = [
        f"{scale} {_value(size[item.name])}" for scale, size in sizes.items() if item.name in size
    ]
    if own:
        yield f"at scale {', '.join(own)}"
    limits = item.metadata
    for name, words in (("minimum", "at least"), ("above", "above"), ("maximum", "at most")):
        if limits[name] is not None:
            yield f"{words} {limits[name]}"
    if limits["choices"] is not None:
        yield f"one of {', '.join(limits['choices'])}"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list) else str(value)


def _of_command() -> str:
    """Studies, scales, figures, examples, subcommands, flags."""
    studies = {name: _first_line(config_class) for name, config_class in configs().items()}
    figures = {name: headline("figure", name) for name in figure_names()}
    parts = [
        "usage: python -m runner [-m] [study=...] [scale=...] [figure=...] [key=value ...]\n"
        "       python -m runner show|runs|figures|report|reference|compare|new ...",
        "Studies (study=...; their parameters: python -m runner study=<name> --help):\n"
        + _listing(studies),
        "Scales (scale=...):\n" + _listing(SCALES),
        "Figures (figure=...):\n" + _listing(figures),
        "Examples:\n" + EXAMPLES,
        "Subcommands (each with --help):\n" + _listing(SUBCOMMANDS),
        "Flags:\n" + _listing(HYDRA),
    ]
    return "\n\n".join(parts)


def _first_line(config_class: type[StudyConfig]) -> str:
    return (config_class.__doc__ or "").split("\n")[0]


def _listing(entries: dict[str, str]) -> str:
    width = max(map(len, entries), default=0)
    return "\n".join(f"  {name:<{width}}  {about}" for name, about in entries.items())
