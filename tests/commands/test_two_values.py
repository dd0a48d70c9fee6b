"""Two values of any parameter of any figure: a figure that keeps them apart, or one line."""

from collections.abc import Iterator
from dataclasses import Field, fields, replace
from typing import Any

import in_process
import pandas as pd
import pytest
from samples import samples

from runner.compose.composing import hydra_ready, overrides_of
from runner.compose.launching import launch
from runner.compose.orders import Order, compose_order
from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.core.studies import default_of
from runner.runs.run import Run

SMOKE = ("scale=smoke", "device=cpu")

QUICK = ("fig4", "rank-fig3b", "bottleneck-rates", "bottleneck-example20")
"""The figures that `make test` has: few parameters, few runs."""


def another(item: Field, value: Any) -> Any:
    """Return a second value of a parameter, of the same type; None if there is no simple one."""
    if isinstance(value, list):
        last = another(item, value[-1])
        return None if last is None or last in value else [last]
    choices = item.metadata["choices"]
    if choices is not None:
        return next((choice for choice in choices if choice != value), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 2
    if isinstance(value, float):
        return value / 2 if 0 < value < float("inf") else 0.1
    return None


def two_values(figure: str) -> Iterator[tuple[str, str]]:
    """Yield each parameter of a figure, and the argument with its value and another one."""
    config = in_process.order_of(f"figure={figure}", *SMOKE).jobs[0].config
    for item in fields(config):
        value = getattr(config, item.name)
        first = default_of(item) if value is None else value
        second = another(item, first)
        if second is not None:
            (word,) = overrides_of({item.name: [first, second]}, choices=True)
            yield item.name, word


def order_or_line(figure: str, word: str) -> Order | str:
    """Return the order of a figure with an argument, or the line with which it is refused."""
    try:
        return in_process.order_of(f"figure={figure}", *SMOKE, word)
    except InputError as refused:
        return str(refused)


@pytest.mark.parametrize(
    "figure", samples(figure_names("smoke"), lambda name: name if name in QUICK else None)
)
def test_two_values_of_a_parameter_are_one_figure_or_one_line(figure):
    tried = 0
    for name, word in two_values(figure):
        tried += 1
        answer = order_or_line(figure, word)
        if isinstance(answer, str):
            assert answer and "\n" not in answer, word
        else:
            (drawn,) = answer.figures
            assert len({repr(getattr(run.config, name)) for run in drawn.runs}) > 1, word
    assert tried > 2


KINDS = [
    ("rank-lemma7", "law=gaussian,uniform"),
    ("rank-lemma7", "widths=[8],[10]"),
    ("fig4", "target_width=3,5"),
    ("norm-layers", "biases=false,true"),
    ("bottleneck-symmetry", "noise=0.0,0.1"),
]
"""An accepted parameter of each kind: a name, a list, a whole number, a truth value, a number."""


@pytest.mark.parametrize(("figure", "word"), samples(KINDS, lambda *case: "computed"))
def test_a_figure_of_two_values_draws_what_the_figure_of_each_value_draws(figure, word, tmp_path):
    with hydra_ready():
        order = compose_order([f"figure={figure}", *SMOKE, f"outputs={tmp_path}", word])
        assert not launch(order)
    (both,), key = order.figures, word.partition("=")[0]
    numbers = both.numbers()
    by_value: dict[str, list[Run]] = {}
    for run in both.runs:
        by_value.setdefault(repr(getattr(run.config, key)), []).append(run)
    parts = [replace(both, runs=tuple(runs)).numbers() for runs in by_value.values()]
    assert len(parts) == 2 and len(numbers) == sum(map(len, parts))
    for part in parts:
        of_both = pd.merge(part, numbers, how="left", indicator=True)
        assert len(part) and (of_both["_merge"] == "both").all()
