"""What stands above a picture: its finding, where its claims allow it, and the counts."""

import re
from pathlib import Path

import pandas as pd
import pytest

from runner.core.catalogue import figure_names, figure_study
from runner.papers.batch_norm_rank.rank_collapse import figures
from runner.results.drawing import Drawing, Finding, counted, drawing_of, upper
from runner.results.figure import Figure
from runner.results.formats import Format
from runner.results.rows import select
from runner.results.style import sheet

HEADLINE = "paper B, figure 1: rank at initialisation"
TABLES = {"metrics": pd.DataFrame({"rank": [7], "data": ["digits"], "train_images": [500]})}


def say(tables):
    return f"the rank is {tables['metrics']['rank'].iloc[0]}"


def judged(**verdicts) -> pd.DataFrame:
    """A table of claims; those whose name begins with ours are."""
    rows = [
        {"claim": name, "verdict": verdict, "kind": "ours" if name.startswith("ours") else "paper"}
        for name, verdict in verdicts.items()
    ]
    return pd.DataFrame(rows, columns=["claim", "verdict", "kind"])


FINDING = Finding(say, holds=["a"], fails=["b"], undecided=["c"])
AS_NEEDED = {"a": "holds", "b": "fails", "c": "undecided"}


def test_no_header_counts_what_other_parameters_would_not_draw():
    """A header such as `in two precisions` stood above a picture of one."""
    said = [drawing_of(name, figure_study(name)).whose for name in figure_names()]
    assert len(said) > 40 and not re.search(r"\b(two|three|four|both)\b", " ".join(said))


def above(findings, verdicts, **options):
    return header(HEADLINE, TABLES, judged(**verdicts), findings=findings, **options)


def header(headline, tables, verdicts, scale="", overrides=(), whose="as in the paper", **drawn):
    drawing = Drawing("rank-fig1", draw, caption="Points.", whose=whose, **drawn)
    return drawing.header(headline, tables, verdicts, scale, overrides)


def draw(tables):
    return sheet(1, 1)[0], tables["metrics"]


@pytest.mark.parametrize("scale", ["quick", "smoke"])
@pytest.mark.parametrize("claim", AS_NEEDED)
@pytest.mark.parametrize("verdict", ["holds", "fails", "undecided", None])
def test_a_finding_needs_the_verdicts_of_all_its_claims_above_scale_smoke(claim, verdict, scale):
    verdicts = {name: said for name, said in (AS_NEEDED | {claim: verdict}).items() if said}
    is_found = verdicts == AS_NEEDED and scale != "smoke"
    finding = "The rank is 7" if is_found else "Rank at initialisation"
    assert above([FINDING], verdicts, scale=scale).finding == finding


def test_of_several_findings_the_first_that_can_be_said_is():
    other = Finding(lambda tables: "nothing else", holds=["a"])
    silent = Finding(lambda tables: "", holds=["a"])
    lacking = Finding(lambda tables: str(select(tables["metrics"], rank=8)), holds=["a"])
    absent = Finding(lambda tables: str(tables["other"]), holds=["a"])
    assert above([FINDING, other], AS_NEEDED).finding == "The rank is 7"
    assert above([FINDING, other], {"a": "holds"}).finding == "Nothing else"
    assert above([silent, lacking, absent, other], {"a": "holds"}).finding == "Nothing else"
    assert above([silent], {"a": "holds"}).finding == "Rank at initialisation"


def test_the_first_line_says_what_it_is_with_its_data_and_what_was_changed():
    what = "Paper B, figure 1  ·  digits (500 training images)  ·  as in the paper"
    assert above([], {}).what == what
    assert above([], {}, overrides=["depth=3", "seed=1"]).what == f"{what}  ·  with depth=3, seed=1"
    five = {"metrics": TABLES["metrics"].assign(replicates=5)}
    assert header(HEADLINE, five, judged(), whose="ours").what.endswith("ours  ·  5 replicates")
    marked = header(HEADLINE, five, judged(), marks="dots: replicates")
    assert marked.what.endswith("5 replicates  ·  dots: replicates")
    gaussian = {"metrics": pd.DataFrame({"data": ["gaussian"]})}
    assert header("paper A: b", gaussian, judged(), whose="").what == "Paper A"
    assert header("α: b", gaussian, judged(), whose="").what == "α", "a symbol has no capital"


def test_header_and_caption_name_only_the_data_that_is_drawn():
    rows = pd.DataFrame({"data": ["digits", "fashion_mnist"], "width": [8, 64], "rank": 1})

    def first(tables):
        return {name: rows.iloc[:1] for name, rows in tables.items()}

    several = {"data": ["digits", "fashion_mnist"]}
    drawn = {"caption": "Points.", "shows": several, "selects": first}
    drawing = Drawing("rank-fig1", draw, **drawn)
    assert drawing.header(HEADLINE, {"metrics": rows}, judged()).what.endswith("  ·  digits")
    words = drawing.description({"metrics": rows}, "rank_collapse")
    assert words == "Points. Not shown: data Fashion-MNIST."
    assert len(drawing({"metrics": rows})[1]) == 1


def test_the_counts_separate_the_claims_of_the_paper_from_ours():
    verdicts = {"a": "holds", "b": "holds", "c": "undecided", "ours-1": "fails", "ours-2": "fails"}
    assert counted(judged(**verdicts)) == "claims: 2 hold, 1 undecided; additional: 2 fail"
    assert counted(judged(**{"ours-1": "holds"})) == "additional: 1 holds"
    loose = judged(a="holds", b="holds").assign(kind=["paper", "illustration"])
    assert counted(loose) == "claims: 1 holds; loose bounds: 1 holds"
    assert counted(judged()) == ""


def test_a_header_is_drawn_on_the_screen_and_not_on_paper(monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", [Drawing("rank-fig1", draw, caption="Points.")])
    lines = above([FINDING], AS_NEEDED)
    figure = Figure("rank-fig1", "quick", (), (), Path())
    shown, _ = figure.drawn(TABLES, lines)
    printed, _ = figure.drawn(TABLES, lines, Format("paper"))
    assert {text.get_text() for text in shown.texts} == {lines.what, lines.finding}
    assert not printed.texts and printed.head == 0 < shown.head
    assert figure.header(TABLES, judged()).finding == upper(figure.title.partition(": ")[2])
