"""Completion in the shell: what Tab offers after `runner` or `python -m runner`.

    eval "$(python -m runner -sc install=bash)"

Everything offered is in the catalogue and in the studies' parameters, so that Hydra, which takes a
while to import, is not needed.
"""

import dataclasses
import os
from collections.abc import Iterable

from runner.cli.catalogue import SCALES, conf_folders, figure_names, figure_study
from runner.cli.settings import CommandSettings
from runner.core.errors import InputError, nearest
from runner.core.rooms import configs

SHELLS = ("bash", "zsh")

LAUNCHERS = ["basic", "joblib"]
"""Those that come with packages, beside the program's own files."""

DEFAULT_STUDY = CommandSettings.study

SCRIPT = """\
_runner_completion() {
    local line="${COMP_LINE:0:$COMP_POINT}" word
    COMPREPLY=()
    case "${1##*/}" in
        python*)
            [[ "$line" =~ ^[^[:space:]]+[[:space:]]+-m[[:space:]]+runner[[:space:]] ]] || return
            COMPREPLY=($(COMP_LINE="$line" "$1" -m runner -sc query=bash 2>/dev/null)) ;;
        *) COMPREPLY=($(COMP_LINE="$line" "$1" -sc query=bash 2>/dev/null)) ;;
    esac
    word="${line##*[[:space:]]}"
    if [[ "$word" == *=* && "$COMP_WORDBREAKS" == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}")
    fi
    [[ "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _runner_completion runner python python3
"""
"""Of bash. Python is completed by it after `-m runner` alone."""


def main(arguments: list[str], subcommands: Iterable[str]) -> int:
    """`install=bash` prints what the shell is to evaluate, `uninstall=bash` what undoes it, and
    `query=bash` what may follow the text in `COMP_LINE`; returns 0.

    Raises InputError for other arguments and shells.
    """
    task, _, shell = (arguments or [""])[0].partition("=")
    if task not in ("install", "uninstall", "query"):
        raise InputError("-sc install=bash, uninstall=bash or query=bash")
    if shell not in SHELLS:
        raise InputError(f"-sc {task}={shell}: {nearest(shell, SHELLS)}")
    if task == "install":
        print("autoload -U +X bashcompinit && bashcompinit\n" * (shell == "zsh") + SCRIPT, end="")
    elif task == "uninstall":
        print("complete -r runner python python3; unset -f _runner_completion")
    else:
        print("\n".join(completions(os.environ.get("COMP_LINE", ""), subcommands)))
    return 0


def completions(line: str, subcommands: Iterable[str]) -> list[str]:
    """What the last word of a command line can become."""
    *words, last = line.split(" ")
    typed = [word for word in words if word][1:]
    if typed[:2] == ["-m", "runner"]:
        typed = typed[2:]
    if "=" in last:
        offered = _values(*last.partition("=")[::2], typed)
    elif typed and typed[0] in subcommands:
        offered = [*_words_of(typed[0], typed[1:]), "outputs=", "scale=", "--help"]
    else:
        keys = [f"{key}=" for key in (*_groups(), *_fields(typed))]
        offered = [*(subcommands if not typed else []), "--help", "--multirun", *keys]
    return sorted({word for word in offered if word.startswith(last)})


def _words_of(subcommand: str, typed: list[str]) -> list[str]:
    """What a subcommand takes beside keys and `--help`, after the words typed so far."""
    actions = {
        "runs": ("list", "check", "diff", "export", "clean"),
        "reference": ("keep", "draw", "judge", "restamp"),
        "new": ("study",),
    }
    if subcommand in actions:
        return [*actions[subcommand]] if not typed else []
    several = {"figures": figure_names, "claims": figure_names}
    return [*several[subcommand]()] if subcommand in several else []


def _values(key: str, value: str, typed: list[str]) -> list[str]:
    """`key=value` for all values that a key may have; of a list of choices, for the last one."""
    before = value[: value.rfind(",") + 1]
    names: list[str] = [*_options(key)]
    if (item := _fields(typed).get(key)) is not None:
        names += item.metadata["choices"] or ()
        names += ("true", "false") if item.type is bool else ()
    return [f"{key}={before}{name}" for name in names]


def _groups() -> list[str]:
    """The keys that choose among files, those of a study and of a data set in the first place."""
    own = {path.name for folder in conf_folders() for path in folder.glob("*/")}
    return sorted((own - {"hydra", "size"}) | {"hydra/launcher", "scale"})


def _options(group: str) -> list[str]:
    """The options of a group, none where the key is no group."""
    stored = {"hydra/launcher": LAUNCHERS, "scale": [*SCALES]}.get(group, [])
    return stored + [
        path.stem for folder in conf_folders() for path in (folder / group).glob("*.yaml")
    ]


def _fields(typed: list[str]) -> dict[str, dataclasses.Field]:
    """The settings, and the parameters of the study that the words choose."""
    chosen = dict(word.partition("=")[::2] for word in typed)
    study = chosen.get("study", DEFAULT_STUDY)
    if chosen.get("figure") in figure_names():
        study = figure_study(chosen["figure"])
    classes = [CommandSettings, *filter(None, [configs().get(study)])]
    return {item.name: item for each in classes for item in dataclasses.fields(each)}
