"""The command `runner new study`: write a study that works, with a figure, a claim and a test."""

import argparse
import keyword
import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from runner.core.catalogue import studies
from runner.core.errors import InputError

TEMPLATE = "template"
"""The folder of the template's files. `{package}`, `{study}` and `{figure}` in their names are
replaced."""


def main(arguments: list[str]) -> int:
    """Write the files of a new study that works into a package of the user; return 0.

    Raises InputError if a name cannot be used, or a file exists already.
    """
    parser = argparse.ArgumentParser(
        prog="runner new",
        description="Write a working study with a figure, a claim and a test; you can change all.",
    )
    parser.add_argument("what", choices=("study",))
    parser.add_argument("name", help="name of the study, a Python name such as my_study")
    parser.add_argument(
        "--package", default="my_studies", help="package of the study (default: my_studies)"
    )
    options = parser.parse_args(arguments)
    study, package = options.name, options.package
    print("\n".join(map(str, write(study, package, Path.cwd()))))
    print(
        f"\nrunner --config-dir {package} study={study} scale=smoke"
        f"\nrunner --config-dir {package} figure={study.replace('_', '-')} scale=smoke"
        f"\npip install pytest && python -m pytest tests/test_{study}.py"
        "\npip install -e .     then from any folder, without --config-dir"
    )
    return 0


def write(study: str, package: str, folder: Path) -> list[Path]:
    """Write the files of a new study into a folder; return their paths, relative to the folder.

    study, package: the names of the new study and of its package. The files are in
    `<package>/<study>/` and `<package>/conf/`; a test is in `tests/`. If there is no
    `pyproject.toml`, it is written, too. Raises InputError if a name cannot be the name of a Python
    package in ASCII, or if the study or one of its files exists already.
    """
    for name in (study, package):
        is_name = name.isidentifier() and name.isascii()  # Hydra's arguments are in ASCII
        if not is_name or keyword.iskeyword(name) or name == "conf":
            raise InputError(
                f"{name!r} cannot be used as a name here: choose a Python name such as my_study"
            )
    if study in studies():
        raise InputError(f"there is already a study {study}: choose another name")
    names = {
        "study": study,
        "package": package,
        "figure": study.replace("_", "-"),
        "title": study.title().replace("_", ""),
    }
    environment = Environment(
        loader=PackageLoader("runner.commands", TEMPLATE),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    texts = {}
    for template in environment.list_templates():
        path = Path(template.removesuffix(".jinja").format(**names))
        texts[path] = environment.get_template(template).render(names)
    for shared in (Path("pyproject.toml"), Path(package, "__init__.py")):
        if (folder / shared).exists():
            del texts[shared]
    for path in texts:
        if os.path.lexists(folder / path):
            raise InputError(f"{path} is there already: nothing was written")
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return sorted(texts)
