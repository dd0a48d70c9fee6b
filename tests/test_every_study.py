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

import pandas as pd
import pytest
import torch
from bench.growth import lent
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from samples import samples
from stopped import bytes_of, compute_with_stops
from tiny import CHOOSING, RUNS, named, tiny

from runner.core.catalogue import configs, module_of, rows_of
from runner.core.errors import InputError
from runner.core.progress import Progress, Stage
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.results.preview import preview
from runner.runs import execution, machine
from runner.runs.execution import execute
from runner.runs.run import Run


@pytest.mark.parametrize(("study", "changes"), samples(RUNS, lambda study, _: study), ids=named)
def test_a_run_has_the_rows_of_its_study_and_the_same_bytes_wherever_it_was_stopped(
    study, changes, tmp_path, monkeypatch
):
    whole, broken = (Run(tiny(study, **changes), tmp_path / name) for name in ("whole", "broken"))
    written = compute_with_stops(whole, [], monkeypatch)
    check_rows(whole)
    picture, summary = preview(whole)
    assert len(picture) > 5000 and len(summary)
    stops = sorted({1, (written + 1) // 3, 2 * written // 3, written} - {0}) if written else []
    compute_with_stops(broken, stops, monkeypatch)
    assert bytes_of(broken) == bytes_of(whole)
    assert (broken.folder / "run.log").read_text().count("goes on") == len(stops)


ONE_BY_ONE = ("breaking_bn", "norm_finetuning", "vgg_size")
"""Studies of networks that are trained one after another."""
PLAIN = {"pretraining": {"steps": [0.1]}}
"""With nothing to choose on others."""
STACKS = [
    (study, {k: v for k, v in changes.items() if k not in CHOOSING} | PLAIN.get(study, {}))
    for study, changes in RUNS
    if "replicates" in configs()[study].__dataclass_fields__ and study not in ONE_BY_ONE
]


@pytest.mark.parametrize(
    ("study", "changes"), samples(STACKS, lambda study, changes: study), ids=named
)
def test_a_replicate_alone_has_the_numbers_that_it_has_in_a_stack(study, changes):
    """Up to the rounding of batched products."""
    alone, stack = (tables_of(tiny(study, **changes | {"replicates": n})) for n in (1, 2))
    for name, rows in alone.items():
        first = [
            table[table["replicate"] == 0].reset_index(drop=True) for table in (rows, stack[name])
        ]
        pd.testing.assert_frame_equal(*first, rtol=1e-3, atol=1e-6)


def tables_of(config: StudyConfig) -> dict[str, pd.DataFrame]:
    """What a run of the study yields."""
    rows: dict[str, list] = {}
    for row in module_of(config.study).run(config, lent(torch.device("cpu"))):
        rows.setdefault(row.table, []).append(vars(row))
    return {name: pd.DataFrame(found) for name, found in rows.items()}


def check_rows(run: Run) -> None:
    """The tables have the columns of their row classes, and the keys name each row."""
    classes = rows_of(run.config.study)
    for name, table in run.tables().items():
        row_class = classes[name]
        columns = [field.name for field in fields(row_class)]
        assert list(table.columns) == columns
        assert set(row_class.keys) <= set(columns), "keys name columns"
        assert not table.duplicated(list(row_class.keys)).any(), f"{name}: keys are not unique"


WHOLE = [-1, 0, 1, 2, 3, 5, 2**63 - 1, 2**63, 10**400]
REAL = [-1.0, 0.0, 5e-324, 1e-19, 0.5, 1.0, 2.0, 1e9, 1e19, 1e30, 1e300, 1.7e308, inf, nan]
TEXT = ["", "0" * 64, "x" * 300]
NOT_HERE = ("fashion_mnist", "cifar10", "random_pixels")
"""Images that are not embedded, or too many for a moment."""
SECONDS = 0.2
"""What an example may take before it is stopped."""
EXAMPLES = int(os.environ.get("EXAMPLES", "2"))
"""Of each study; `make test-more` has eight times as many."""


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

    def __init__(self, total: int, what: str, *more: typing.Any, **named: typing.Any) -> None:
        assert what in typing.get_args(Stage), "one name for each stage, in every study"
        super().__init__(total, what, *more, **named)

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


@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(8 * EXAMPLES, marks=pytest.mark.more)])
@pytest.mark.parametrize("study", sorted(configs()))
def test_any_parameters_end_in_rows_or_in_one_or_two_lines(study, examples, impatient):
    """No traceback, and nothing that computes for long without a sign of it."""

    @settings(max_examples=examples, deadline=None, database=None)
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
    ("bn_only", "start", "active"): {"statistics": "fixed"},
    ("bn_only", "trained", "all"): {"start": "active", "statistics": "fixed"},
    ("bn_only", "trained", "scales"): {"start": "active", "statistics": "fixed"},
    ("bn_only", "trained", "coordinates"): {"start": "active", "statistics": "fixed"},
    ("constructions", "dtype", "float64"): {"theorem": "deep"},
    ("constructions", "dtype", "mpmath"): {"theorem": "deep", "precision": 30},
    ("constructions", "theorem", "sparse"): {"sparsity": 0.5},
    ("low_rank_training", "loss_function", "cross_entropy"): {"classes": 10},
    ("norm_finetuning", "arms", "biases"): {"start": "pretrained"},
    ("norm_finetuning", "arms", "low_rank"): {"start": "pretrained"},
    ("rank_chain", "protocol", "authors"): {"layers": 10_000, "chains": 1},
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
        pytest.fail(
            f"{study} takes any text for {name}: its study.py must look names up, by"
            f' core.choices.lookup("{name}", name, table) where it uses them, or list in USED with'
            " which other parameters it uses them"
        )


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
