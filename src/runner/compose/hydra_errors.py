"""What Hydra and OmegaConf say of a wrong configuration, in one or two lines."""

import dataclasses
import re
import traceback

from runner.core.catalogue import SCALES, configs, studies
from runner.core.errors import nearest
from runner.core.settings import Settings

READERS = ("hydra", "omegaconf", "antlr4", "yaml")
"""The packages that read a configuration."""


def is_hydras(error: Exception) -> bool:
    """Return whether Hydra or OmegaConf raised the error: the configuration is wrong then."""
    if type(error).__module__.partition(".")[0] in READERS:
        return True
    if isinstance(error, OSError):  # a closed pipe, a folder where a file should be
        return False
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return innermost.f_globals.get("__name__", "").partition(".")[0] in READERS


def explain(error: Exception) -> str:
    """Return what is wrong, in one or two lines, for an error of Hydra or OmegaConf."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    text = "\n".join(str(cause) for cause in causes)
    if option := re.search(r"(?:Could not find|Could not load) '([\w/.-]+)/([^/']*)'", text):
        return _explain_option(option[1], option[2].removesuffix(".yaml"), text)
    if ambiguous := re.search(r"Ambiguous value for argument '(.*)'", text):
        return f"{ambiguous[1]}: add -m to sweep over several values, or write key=[value,value]"
    if key := re.search(r"Key '([^']+)' (?:is )?not in '(\w+)'", text):
        return _file_in(text) + explain_key(key[1], key[2])
    where = re.search(r"full_key: (\S+)", text)
    if where and (value := re.search(r"(Value '.*|.*could not be converted.*)", str(causes[-1]))):
        return f"{where[1]}: {value[1]}"
    lines = [line.strip() for line in str(causes[-1]).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__


def _file_in(text: str) -> str:
    """Return the YAML file that Hydra's text names as the place of an error, with a colon."""
    place = re.search(r"In '(size/\w+|[\w/-]+)[^']*': ", text)
    return f"conf/{place[1]}.yaml: " if place else ""


def _explain_option(group: str, name: str, text: str) -> str:
    """Say that there is no such file in a group; Hydra's text ends with those that there are."""
    listing = text.partition("Available options in ")[2].partition("Config search path")[0]
    options = [line.strip() for line in listing.splitlines()[1:] if line.strip()]
    if group == "schema":
        return f"conf/study/{name}.yaml has no study: no folder {name} with a config.py"
    if group == "study" and name in studies():
        return f"study={name} has no conf/study/{name}.yaml"
    if group.startswith("size/") and name in SCALES:
        return f"conf/{group}.yaml has no scale {name}"
    label = "scale" if group.startswith("size/") else group
    return f"{label}={name} is unknown: {nearest(name, options)}"


def explain_key(key: str, class_name: str) -> str:
    """Say that there is no such key, and which is nearest: the study's own, else another's."""
    settings = {item.name for item in dataclasses.fields(Settings)}
    own: set[str] = set()
    others: dict[str, str] = {}
    chosen = ""
    for study, config_class in configs().items():
        names = {item.name for item in dataclasses.fields(config_class)}
        if config_class.__name__ == class_name:
            own, chosen = names, study
            if key == "checksums" and "data" in names:  # conf/data/<data>.yaml has given it
                choices = config_class.__dataclass_fields__["data"].metadata["choices"]
                return f"study={study} reads no files: data={' or data='.join(choices)}"
        else:
            others |= dict.fromkeys(names, study)
    hint = nearest(key, own | settings)
    if not hint.startswith("did") and nearest(key, others).startswith("did"):
        close = nearest(key, others).split("'")[1]
        hint = f"did you mean {close!r} of study={others[close]}?"
    if chosen and not hint.startswith("did"):
        everything = f"All of them: runner study={chosen} --help"
        return f"{chosen} has no parameter {key}, and none with a similar name. {everything}"
    return f"{key} is not a key: {hint}"
