"""Which changes of the program make a figure out of date."""

from importlib import import_module

import pytest

from runner.core.catalogue import figure_names, figure_study
from runner.results import figure
from runner.runs import provenance

FIGURE = "rank-fig2"
DRAWS = (
    "papers.batch_norm_rank.rank_collapse.figures",
    "papers.batch_norm_rank.rank_collapse.claims",
    "papers.batch_norm_rank.rank_collapse.quantities",
    "papers.batch_norm_rank.names",
    "papers.batch_norm_rank.looks",
    "results.style",
    "results.evidence",
    "results.captions",
)
DOES_NOT = (
    "papers.norm_tuning.bn_only.figures",
    "papers.norm_tuning.names",
    "papers.batch_norm_rank.rank_chain.claims",
    "papers.batch_norm_rank.rank_collapse.study",
    "commands.help",
)


def program(name: str) -> str:
    return figure.program_of.__wrapped__(name, figure_study(name))


@pytest.mark.parametrize(("module", "counts"), [(m, m in DRAWS) for m in (*DRAWS, *DOES_NOT)])
def test_a_figure_is_of_the_code_that_draws_and_judges_it(module, counts, monkeypatch):
    module = f"runner.{module}"
    import_module(module)  # an import after the change would store the text of the file again
    before = program(FIGURE)
    text = provenance.source_of(module)
    monkeypatch.setitem(provenance._sources, module, text + "\nADDED = 1\n")
    assert (program(FIGURE) != before) == counts


def test_a_title_counts_and_each_figure_has_its_own(monkeypatch):
    before = program(FIGURE)
    monkeypatch.setattr(figure, "title_of", lambda *_: "another title")
    assert program(FIGURE) != before
    monkeypatch.undo()
    names = figure_names("quick")
    assert len({program(name) for name in names}) == len(names)
