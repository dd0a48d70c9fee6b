"""The layers: import-linter holds them, and would notice one that goes astray."""

import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest
from scratch_copy import REPOSITORY, lint

from runner.core.catalogue import part_of, studies

ASTRAY = (
    ("core/errors.py", "from runner.runs import tables"),
    ("runs/tables.py", "import hydra"),
    ("results/claims.py", "import runner.papers.norm_tuning.theory"),
    ("papers/norm_tuning/theory.py", "import runner.papers.bottleneck_structure.theory"),
    ("papers/norm_tuning/bn_only/study.py", "import runner.papers.norm_tuning.constructions.study"),
    (
        "papers/batch_norm_rank/rank_chain/study.py",
        "import runner.papers.batch_norm_rank.rank_collapse.study",
    ),
    (
        "papers/training_invariances/invariances/study.py",
        "import runner.papers.training_invariances.low_rank_training.study",
    ),
    (
        "papers/bottleneck_structure/rank_one/study.py",
        "import runner.papers.bottleneck_structure.symmetry.study",
    ),
    ("papers/norm_tuning/bn_only/rows.py", "import torch"),
    ("papers/norm_tuning/bn_only/claims.py", "import runner.papers.norm_tuning.bn_only.figures"),
    ("papers/norm_tuning/bn_only/figures.py", "import runner.papers.norm_tuning.bn_only.claims"),
    ("papers/norm_tuning/bn_only/study.py", "import runner.results.claims"),
)
"""A line for a module, of which one breaks each contract."""


def contracts(folder) -> dict[str, str]:
    """What became of each contract."""
    found = re.findall(r"^(.+?) (KEPT|BROKEN)\b", lint(folder).stdout, re.MULTILINE)
    return dict(found)


def test_every_contract_is_kept_and_would_be_broken_by_an_arrow_that_goes_astray(tmp_path):
    kept = contracts(REPOSITORY)
    assert len(kept) == 12 and set(kept.values()) == {"KEPT"}
    shutil.copytree(REPOSITORY / "src", tmp_path / "src")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    for module, line in ASTRAY:
        with (tmp_path / "src" / "runner" / module).open("a") as file:
            file.write(f"\n{line}\n")
    assert contracts(tmp_path) == dict.fromkeys(kept, "BROKEN")


def test_the_contracts_see_every_study():
    code = {path.parent for path in (REPOSITORY / "src" / "runner").rglob("*.py")}
    unseen = sorted(str(folder) for folder in code if not (folder / "__init__.py").exists())
    assert not unseen, f"needed for the contracts: an __init__.py in {', '.join(unseen)}"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    listed = [
        {*contract.get("modules", ())} for contract in project["tool"]["importlinter"]["contracts"]
    ]
    papers: dict[str, set[str]] = {}
    for package in studies().values():
        papers.setdefault(package.rpartition(".")[0], set()).add(package)
    for paper, own in papers.items():
        if paper.startswith("runner.papers."):
            listing = f"the contract of {paper} in pyproject.toml must list exactly"
            assert own in listed, f"{listing} {', '.join(sorted(own))}"


def ordered(graph: grimp.ImportGraph) -> list[str]:
    """All modules, each after the modules that it imports; CycleError if there is a circle."""
    arrows = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    return [*TopologicalSorter(arrows).static_order()]


def test_no_module_stands_in_a_circle():
    """All imports count: at the top, within functions, and for types alone (TYPE_CHECKING).

    The contract on circles leaves out the last kind. What is imported by a name that the program
    makes up (importlib) is in neither.
    """
    graph = grimp.build_graph("runner", exclude_type_checking_imports=False, cache_dir=None)
    assert len(ordered(graph)) > 200
    figure, rules = "runner.results.figure", "runner.results.preregistration"
    assert graph.direct_import_exists(importer=figure, imported=rules)
    graph.add_import(importer=rules, imported=figure)
    with pytest.raises(CycleError, match=rules):
        ordered(graph)


def test_what_checks_a_command_starts_without_torch():
    """At run time, where late imports do not count."""
    for imported, absent in (
        (
            "runner.commands.help, runner.core.settings, runner.core.streams",
            ("torch", "hydra", "pandas"),
        ),
        (
            "runner.compose.composing, runner.runs.run; runner.compose.composing.register()",
            ("torch",),
        ),
    ):
        code = f"import sys, {imported}; assert not set({absent}) & set(sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def drawings() -> dict[str, int]:
    """How many lines the function has that draws a figure or a preview, by its name."""
    lines = {}
    for study in studies():
        module = part_of(study, "figures")
        draws = [drawing.draw for drawing in getattr(module, "FIGURES", [])]
        overview = getattr(module, "overview", None)
        draws += overview.values() if isinstance(overview, dict) else [overview]
        for draw in draws:
            while isinstance(draw, partial):
                draw = draw.func
            if draw is not None:
                where = f"{draw.__module__}.{draw.__name__}"
                lines[where] = len(inspect.getsource(draw).splitlines())
    return lines


def test_a_drawing_has_at_most_eighty_lines():
    lines = drawings()
    assert len(lines) > 40
    assert {where: count for where, count in lines.items() if count > 80} == {}
