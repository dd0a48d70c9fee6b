"""Printed names of columns and values."""

import importlib
import sys

import pandas as pd
import pytest

from runner.core.catalogue import studies
from runner.core.errors import InputError
from runner.results.labels import Names, names_in, names_of, upper
from runner.results.looks import BLUE, Look, Name
from runner.results.preview import with_names


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a package with this `names.py`, and returns the package's name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        package = f"named_{len([*tmp_path.iterdir()])}"
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "names.py").write_text(text)
        importlib.invalidate_caches()
        return package

    yield write
    for name in [name for name in sys.modules if name.startswith("named_")]:
        del sys.modules[name]


def test_a_name_belongs_to_its_column_and_other_names_are_printed_as_typed():
    names = Names({}, {"method": {"sgd": Name("SGD on γ\nand β", Look(BLUE))}})
    assert names.value("method", "sgd") == "SGD on γ and β"
    assert names.value("optimizer", "sgd") == "SGD", "a name that all papers share"
    assert names.value("start", "sgd") == "sgd"
    assert names.look("method", "sgd") == Look(BLUE) and names.look("optimizer", "sgd") is None
    for typed in ("rgb_u8.npz", "my_activations:swish", "batch_no_mean", "flat_resnet"):
        assert names.value("activation", typed) == typed


@pytest.mark.parametrize("study", studies())
def test_the_parameters_of_a_study_have_names_without_underscores_or_none(study):
    for column, table in names_of(study).values.items():
        for value in table:
            assert "_" not in names_of(study).value(column, value), (column, value)


def test_a_printed_table_has_the_names_of_each_column():
    table = pd.DataFrame({"method": ["sgd"], "optimizer": ["sgd"], "schedule": [None], "n": [1.5]})
    shown = with_names(table, "bn_only")
    assert shown.iloc[0].to_dict() == {
        "method": "γ and β trained",
        "optimizer": "SGD",
        "schedule": None,
        "n": 1.5,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NAMES = ['sgd']", "NAMES is ['sgd']: it must be a table for each column"),
        ("NAMES = {'sgd': 'SGD'}", """NAMES["sgd"] is 'SGD': it must be a table of names"""),
        (
            "NAMES = {'method': {'sgd': ('SGD', 'red')}}",
            """NAMES["method"]['sgd'] is ('SGD', 'red'): it must be a text or a Name""",
        ),
        ("MEASURES = {'loss': 1}", "MEASURES['loss'] is 1: it must be a text"),
        ("UNMET = {('my_study',): 'x'}", "a key of UNMET is ('my_study',): it must be a text"),
    ],
)
def test_a_table_of_names_in_another_form_is_one_line_that_names_the_entry(written, text, said):
    with pytest.raises(InputError) as error:
        names_in(written(text))
    assert said in str(error.value) and "names.py: " in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_may_be_for_one_study_alone(written):
    package = written("MEASURES = {'n': 'number', ('first', 'n'): 'N', ('second', 'n'): 'ν'}")
    first, third = (names_in(f"{package}.{study}").column("n") for study in ("first", "third"))
    assert (first, third) == ("N", "number")


def test_a_module_that_names_needs_and_that_is_absent_is_not_hidden(written):
    with pytest.raises(ModuleNotFoundError, match="absent_module"):
        names_in(written("import absent_module"))


def test_a_sentence_begins_with_a_capital_but_a_symbol_or_a_typed_name_does_not():
    assert upper("rank against layer") == "Rank against layer" and upper("a line") == "A line"
    for text in ("r against layer", "r(H) − 1", "α against n", "my_file.npz", "relu2 against n"):
        assert upper(text) == text
