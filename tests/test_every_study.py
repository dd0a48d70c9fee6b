"""Every study: at tiny sizes, at values that nobody would give, and where it diverges.

`EXAMPLES=2000 python -m pytest tests/test_every_study.py` tries so many of each study.
"""

import os
import time
import typing
from dataclasses import fields
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from bench.growth import lent
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from runner.core.catalogue import configs, module_of, rows_of
from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.results.figures import quick_look
from runner.runs import execution, machine
from runner.runs.execution import execute
from runner.runs.run import Run


@pytest.mark.parametrize("study", sorted(configs()))
def test_a_study_yields_the_rows_that_it_describes(study, tmp_path):
    run = Run(tiny(study), tmp_path)
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    check_rows(run)
    assert quick_look(run).strip()
    assert (run.folder / "overview.png").stat().st_size > 5000


def check_rows(run: Run) -> None:
    """The tables have the columns of their row classes, and the keys name each row."""
    classes = rows_of(run.config.study)
    for name, table in run.tables().items():
        row_class = classes[name]
        columns = [item.name for item in fields(row_class)]
        assert list(table.columns) == columns
        assert set(row_class.keys) <= set(columns), "keys name columns"
        assert not table.duplicated(list(row_class.keys)).any(), f"{name}: keys are not unique"


TINY = {
    "bn_classifier": {"target_width": 2, "learning_rates": [0.01], "batch_size": 512},
    "bn_only": {"target_width": 2, "train_samples": 400, "test_samples": 60, "batch_size": 20},
    "bottleneck": {"depths": [4], "width": 4, "samples": 6, "test_samples": 5, "steps": 8},
    "breaking_bn": {"multiplier": 0.02, "image_size": 2, "samples": 8, "methods": ["batch_norm"]},
    "constructions": {"target_width": 3, "points": 5, "block": 2},
    "example20": {"depths": [8, 12], "exponents": [0.6, 0.8], "grid": 2},
    "invariances": {"width": 4, "channels": 2, "samples": 4, "learning_rates": [0.5, 0.25]},
    "pretraining": {"depth": 3, "width": 4, "samples": 8, "learning_rates": [0.03]},
    "linear": {"depths": [2, 3], "width": 2, "rank": 1, "iterations": 5},
    "low_rank_training": {"width": 4, "channels": 2, "samples": 6, "epochs": 2},
    "norm_layers": {"target_width": 3, "batch_sizes": [4], "samples": 20},
    "rank_chain": {"widths": [4, 6], "skips": [0.5, 1.0], "layers": 40, "chains": 4, "draws": 6},
    "rank_collapse": {"depth": 3, "width": 4, "samples": 8, "learning_rates": [0.03]},
    "rank_one": {"samples": [4], "depth": 7, "width": 4, "steps": 8, "segment_points": 3},
    "symmetry": {"depth": 4, "width": 6, "dimension": 4, "horizon": 3, "starts": 20, "steps": 8},
}
"""Sizes at which a run takes a moment; with those that several studies share:"""
SHARED = {"points": 3, "replicates": 2, "epochs": 1, "batch_size": 512, "records": 2, "time": 1.0}
MORE = {
    "symmetry": {"batch_size": 5, "probes": 20, "resolution": 3},
    "pretraining": {"pretraining_steps": [2], "pretraining_batch_size": 8},
    "breaking_bn": {"replicates": 1},
    "rank_chain": {"burn_in": 5},
}

WHOLE = [-1, 0, 1, 2, 3, 5, 2**63 - 1, 2**63, 10**400]
REAL = [-1.0, 0.0, 5e-324, 1e-19, 0.5, 1.0, 2.0, 1e9, 1e19, 1e30, 1e300, 1.7e308, inf, nan]
TEXT = ["", "0" * 64, "x" * 300]
NOT_HERE = ("fashion_mnist", "cifar10", "random_pixels")
"""Images that are not embedded, or too many for a moment."""
SECONDS = 0.2
"""What an example may take before it is stopped."""
EXAMPLES = int(os.environ.get("EXAMPLES", "15"))


def tiny(study: str, **changes: object) -> StudyConfig:
    """A configuration of a moment, with other values for some parameters."""
    known = {field.name for field in fields(configs()[study])}
    shared = {name: value for name, value in SHARED.items() if name in known}
    return configs()[study](**{**shared, **TINY.get(study, {}), **MORE.get(study, {}), **changes})


def values(hint: typing.Any, choices: tuple[str, ...] | None) -> st.SearchStrategy:
    """Values of a parameter's type, sensible or not."""
    if typing.get_origin(hint) is list:
        return st.lists(values(typing.get_args(hint)[0], choices), max_size=3)
    if typing.get_args(hint):  # | None
        return st.none() | values(typing.get_args(hint)[0], choices)
    if choices is not None:
        return st.sampled_from([choice for choice in choices if choice not in NOT_HERE])
    if hint is bool:
        return st.booleans()
    return st.sampled_from({int: WHOLE, float: REAL, str: TEXT}[hint])


@st.composite
def parameters(draw: st.DrawFn, study: str) -> dict[str, object]:
    """Up to three parameters of a study, and up to three that are chosen from a list."""
    config_class = configs()[study]
    hints = typing.get_type_hints(config_class)
    known = {field.name: field.metadata["choices"] for field in fields(config_class)}
    chosen = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True))
    listed = sorted(name for name, choices in known.items() if choices)
    if listed:
        chosen += draw(st.lists(st.sampled_from(listed), max_size=3, unique=True))
    return {name: draw(values(hints[name], known[name])) for name in sorted(set(chosen))}


class Enough(BaseException):
    """Long work has shown that it counts its steps."""


class Impatient(Progress):
    """Stops the run that takes long."""

    deadline = inf

    def update(self, count: int = 1, **numbers: typing.Any) -> None:
        super().update(count, **numbers)
        if time.monotonic() > Impatient.deadline:
            raise Enough


@pytest.fixture
def impatient(monkeypatch):
    """A machine with 164 MiB beside the program, on which nothing may take long."""
    monkeypatch.setattr(execution, "Progress", Impatient)
    statm = Path("/proc/self/statm")
    monkeypatch.setattr(
        machine, "memory", lambda: 2**12 * int(statm.read_text().split()[1]) + 164 * 2**20
    )


@pytest.mark.parametrize("study", sorted(configs()))
def test_any_parameters_end_in_rows_or_in_one_or_two_lines(study, impatient):
    """No traceback, and nothing that computes for long without a sign of it."""

    @settings(max_examples=EXAMPLES, deadline=None, database=None)
    @seed(0)
    @given(changes=parameters(study))
    def attempt(changes):
        with TemporaryDirectory() as outputs:
            try:
                run = Run(tiny(study, **changes), Path(outputs))
                Impatient.deadline = time.monotonic() + SECONDS
                execute(run, Settings(outputs=outputs, device="cpu"))
            except InputError as error:
                assert len(str(error).splitlines()) <= 2 and len(str(error)) < 500
            except Enough:
                torch.set_grad_enabled(True)
            else:
                check_rows(run)

    attempt()


CHOSEN = [
    pytest.param(study, field.name, id=f"{study} {field.name}")
    for study in sorted(configs())
    for field in fields(configs()[study])
    if field.metadata["choices"]
]
"""Every parameter that is chosen from a list of names."""

USED = {
    ("bn_only", "methods"): {"widths": [3]},
    ("breaking_bn", "methods"): {"architecture": "resnet50"},
    ("low_rank_training", "optimizer"): {"weight_decays": [0.1]},
    ("rank_chain", "dtype"): {"engine": "direct"},
    ("rank_chain", "law"): {"engine": "direct"},
}
"""Where the parameter says something."""

NEEDED = {
    ("constructions", "dtype", "float64"): {"theorem": "deep"},
    ("constructions", "dtype", "mpmath"): {"theorem": "deep", "precision": 30},
    ("constructions", "theorem", "sparse"): {"sparsity": 0.5},
    ("low_rank_training", "loss_function", "cross_entropy"): {"classes": 10},
    ("pretraining", "methods", "plain_ascent"): {"methods": ["plain_ascent", "vanilla"]},
    ("rank_collapse", "data", "gaussian"): {"train": False},
}
"""What else a name asks for."""

SAME = {("rank_chain", "engine"): [["auto", "kernel"]]}
"""Names that stand for one thing, on the CPU."""


def numbers(config: StudyConfig) -> str:
    """What a run measures, table by table: no names, and nothing that the configuration says."""
    said = {field.name for field in fields(config)}
    rows: dict[str, list] = {}
    for row in module_of(config.study).run(config, lent(torch.device("cpu"))):
        measured = {k: v for k, v in vars(row).items() if k not in said and not isinstance(v, str)}
        rows.setdefault(row.table, []).append(measured)
    return repr(rows)


@pytest.mark.parametrize(("study", "name"), CHOSEN)
def test_a_name_that_is_known_to_a_list_alone_is_an_error_where_it_is_used(study, name):
    config = tiny(study, **USED.get((study, name), {}))
    unknown = ["unheard_of"] if isinstance(getattr(config, name), list) else "unheard_of"
    object.__setattr__(config, name, unknown)  # as if it were one of the choices
    with pytest.raises(InputError, match="=unheard_of .*: choose from "):
        numbers(config)


@pytest.mark.parametrize(("study", "name"), CHOSEN)
def test_every_name_leads_to_numbers_of_its_own(study, name):
    (choices,) = (f.metadata["choices"] for f in fields(configs()[study]) if f.name == name)
    listed = isinstance(getattr(tiny(study), name), list)
    found: dict[str, list[str]] = {}
    for choice in choices:
        if choice not in NOT_HERE:
            changes = {name: [choice] if listed else choice} | USED.get((study, name), {})
            config = tiny(study, **changes | NEEDED.get((study, name, choice), {}))
            found.setdefault(numbers(config), []).append(choice)
    assert [names for names in found.values() if len(names) > 1] == SAME.get((study, name), [])
