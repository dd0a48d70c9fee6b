"""The command `runner new study`: write a working study with figure, claim and test."""

import argparse
import keyword
import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from runner.core.catalogue import studies
from runner.core.errors import InputError

TEMPLATE = "template"
"""Folder of the files. `{package}`, `{study}` and `{figure}` in their names are replaced."""


def main(arguments: list[str]) -> int:
    """Write a working study into a package of the user; return 0.

    Raises InputError if a name cannot be used, or a file exists already.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner new",
        description="Write a working study with a figure, a claim and a test, to be changed.",
    )
    parser.add_argument("what", choices=("study",))
    parser.add_argument("name", help="of the study: a word of Python, as my_study")
    parser.add_argument(
        "--package", default="my_studies", help="package for it, made here if needed"
    )
    options = parser.parse_args(arguments)
    written = write(options.name, options.package, Path.cwd())
    print("\n".join(map(str, written)))
    figure = figure_of(options.name)
    print(
        f"\npython -m runner --config-dir {options.package} study={options.name} scale=smoke"
        f"\npython -m runner --config-dir {options.package} figure={figure} scale=smoke"
        f"\npython -m pytest tests/test_{options.name}.py"
        "\npip install -e .     then from any folder, without --config-dir"
    )
    return 0


def figure_of(study: str) -> str:
    """Return the name of the figure of a study."""
    return study.replace("_", "-")


def write(study: str, package: str, place: Path) -> list[Path]:
    """Write `<package>/<study>/`, `<package>/conf/`, a test, and, without one, a pyproject.toml.

    Returns the paths of the files, relative to `place`. Raises InputError if a name is no Python
    identifier, or the study or one of its files exists already.
    """
    for name in (study, package):
        if not name.isidentifier() or keyword.iskeyword(name) or name == "conf":
            raise InputError(f"{name!r} cannot be the name of a Python package: say my_study")
    if study in studies():
        raise InputError(f"there is already a study {study}: choose another name")
    texts = _texts({"study": study, "package": package, "figure": figure_of(study)})
    for shared in (Path("pyproject.toml"), Path(package, "__init__.py")):
        if (place / shared).exists():
            del texts[shared]
    if there := [path for path in texts if os.path.lexists(place / path)]:
        raise InputError(f"{there[0]} is there already: nothing was written")
    for path, text in texts.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        with (place / path).open("x") as file:  # through no link
            file.write(text)
    return sorted(texts)


def _texts(names: dict[str, str]) -> dict[Path, str]:
    """Return what each file holds, by its path."""
    environment = Environment(
        loader=PackageLoader("runner.commands", TEMPLATE),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    title = "".join(part.capitalize() for part in names["study"].split("_"))
    texts = {}
    for template in environment.list_templates():
        path = Path(template.removesuffix(".jinja").format(**names))
        texts[path] = environment.get_template(template).render(**names, title=title)
    return texts
