"""The parts of the documents that are made from results."""

import html
import json
import re
import shutil
import struct
from collections import Counter
from dataclasses import replace
from io import BytesIO

import numpy as np
import overview
import pandas as pd
import pytest
from gallery import (
    HOURS_AT_PAPER,
    NBSP,
    WORK_AT_PAPER,
    captioned,
    draw_pictures,
    drawn,
    fails,
    figures,
    finding,
    findings,
    index,
    measured,
    not_computed,
    papers,
    results_of,
    short,
    summary,
    table,
    times,
    totals,
    undecided,
    write_between,
)
from in_process import configs_of
from PIL import Image
from reference import keep_benchmarks

from runner.commands.kept import KeptFigure, read_tables
from runner.commands.report import VERDICTS
from runner.commands.report import papers as about_papers
from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.results.claims import distinct
from runner.runs.provenance import REFERENCE

SMALL = "bottleneck-example20"
SOME = (SMALL, "conserved", "fig4", "fig5", "rank-fig3b", "rank-fig7")
"""Figures of all papers, stored at different scales."""
COUNTS = f"✓{NBSP}1 · *additional* ✗{NBSP}1"
"""Of the claims below: one of the paper's holds, one of ours fails."""

RUN = dict.fromkeys(("commit", "dirty", "threads", "versions")) | {"device_name": "x86_64"}


@pytest.fixture
def reference(tmp_path):
    """A reference that holds figure 4 alone, with one claim that fails."""
    folder = tmp_path / "quick" / "fig4"
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text(
        json.dumps({"seconds": 100.0, "command": "make fig4", "runs": [RUN]})
    )
    claims = {
        "claim": ["one", "other"],
        "verdict": ["holds", "fails"],
        "statement": ["a", "b | c"],
        "measured": ["1", "2"],
        "source": ["paper A", "paper A"],
        "kind": ["paper", "ours"],
        "note": ["", "in all"],
        "n": [8, 8],
        "left_out": [0.0, 0.0],
        "standing": ["pre-registered", "exploratory"],
        "runs": ["one", "one"],
        "data": ["digits", "digits"],
    }
    pd.DataFrame(claims).to_csv(folder / "claims.csv", index=False)
    (folder / "caption.txt").write_text("Lines: medians.")
    return tmp_path


def test_the_tables_have_a_row_for_every_figure(reference):
    """With as many cells: a bar, as in a norm, does not end its own."""
    assert table(["norm"], [["|A|"]]).splitlines()[-1] == "| \\|A\\| |"
    rows = figures(reference).splitlines()[2:]
    assert len(rows) == len(figure_names())
    assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows}) == 1
    (row,) = [row for row in rows if "`fig4`" in row]
    assert row.startswith("| A | `fig4` | ")
    assert row.endswith(f" | [{COUNTS}](figures/fig4.png) |  |  |")
    assert all(other.endswith("|  |  |  |") for other in rows if other != row)
    assert f"| `fig4` | 100{NBSP}s |  |  |" in times(reference).splitlines()
    first, *others = papers(reference).splitlines()[2:]
    assert first.endswith(f"| {COUNTS} |  |  |") and "https://arxiv.org/abs/2302.07937" in first
    assert [row[2] for row in others] == ["B", "C", "D"]
    assert all(row.endswith("|  |  |  |") for row in others)


CELL = r'<td .*?src="figures/([^"]*)\.png" alt="([^"]*)".*?<b>.*?</b> (.*?)\.<br>\n(.*?)</td>'


def test_picture_verdicts_and_headline_of_the_gallery_are_of_one_scale(tmp_path):
    """Of the largest scale that is kept of each figure."""
    for folder in (path.parent for path in REFERENCE.glob("*/*/claims.csv")):
        if folder.name in SOME:
            (tmp_path / folder.parent.name).mkdir(exist_ok=True)
            (tmp_path / folder.parent.name / folder.name).symlink_to(folder)
    page = index(tmp_path)
    cells = re.findall(CELL, html.unescape(page), re.S)
    kept = {path.name for path in tmp_path.glob("*/*")}
    assert len(cells) == len(kept) == len(SOME)
    total = sum((each.counts["paper"] for each in results_of(tmp_path)), Counter())
    holds, fail, rest = (total[verdict] for verdict in VERDICTS)
    assert f"{holds} hold, {fail} fail and {rest} are" in page
    said = f"Of {total.total()} statements {holds} hold, {fail} fail, and {rest} are undecided."
    assert totals(tmp_path) == said
    for picture, words, found, below in cells:
        name = max((each for each in kept if picture.startswith(each)), key=len)
        scales = [s for s in ("paper", "medium", "quick") if (tmp_path / s / name).exists()]
        typed = f" SCALE={scales[0]}" * (scales[0] != "quick")
        assert picture == name + f"-{scales[0]}" * (scales[0] != "quick")
        assert f"Scale <code>{scales[0]}</code>, <code>make {name}{typed}</code>: " in below
        assert found not in words and found == finding(tmp_path / scales[0] / name)
        claims = pd.read_csv(tmp_path / scales[0] / name / "claims.csv")
        own = distinct(claims)["verdict"].value_counts()
        signs = re.findall(r"([✓✗?])\s(\d+)", below)
        for verdict, sign in VERDICTS.items():
            assert sum(int(count) for s, count in signs if s == sign) == own.get(verdict, 0)


def test_what_is_not_kept_has_its_command_and_hours(tmp_path):
    (tmp_path / "paper" / "rank-fig5").mkdir(parents=True)
    shared = {"run": "shared", "cpu_seconds": 1800}
    for name, runs in {"rank-fig5": [shared], "rank-fig7": [shared], "rank-fig1": []}.items():
        (tmp_path / "medium" / name).mkdir(parents=True)
        about = {"runs": [*runs, {"run": name, "cpu_seconds": 720}]}
        (tmp_path / "medium" / name / "provenance.json").write_text(json.dumps(about))
    rows = not_computed(tmp_path).splitlines()
    assert "| `make rank-vgg SCALE=paper` | 5 |" in rows
    (convolutional,) = [row for row in rows if "`make rank-fig7 SCALE=paper`" in row]
    assert "rank-fig10" in convolutional and "rank-fig5" not in convolutional, "5 is kept"
    assert convolutional.endswith("| 370 |"), ".9 hours, 412.5 times"


def test_every_figure_is_kept_at_scale_paper_or_has_an_estimate():
    estimated = {name for names in (*WORK_AT_PAPER, *HOURS_AT_PAPER) for name in names}
    kept = {path.name for path in (REFERENCE / "paper").iterdir()}
    same = {"what-others-saw"}  # its scale `paper` is `medium`, which is kept
    of_same = [configs_of("what-others-saw", f"scale={scale}") for scale in ("paper", "medium")]
    assert of_same[0] == of_same[1]
    assert estimated | kept | same == set(figure_names())


@pytest.mark.parametrize("names", WORK_AT_PAPER)
def test_the_work_at_paper_is_that_of_the_presets(names):
    """Images, epochs, the square of the channels, and the networks trained."""
    paper, medium = (configs_of(names[0], f"scale={scale}") for scale in ("paper", "medium"))

    def work(config):
        images = config.train_images or 50_000
        networks = 3 * config.selection_replicates + config.replicates
        return images * config.epochs * config.multiplier**2 * networks

    table = read_tables(REFERENCE / "medium" / names[0])["training"]
    stored = replace(medium[0], replicates=int(table["replicates"].iloc[0]))  # their time is known
    assert WORK_AT_PAPER[names] == pytest.approx(work(paper[0]) / work(stored))


def test_a_claim_that_two_figures_make_of_the_same_numbers_counts_once(reference):
    shutil.copytree(reference / "quick" / "fig4", reference / "quick" / "fig5")
    other = reference / "quick" / "fig5" / "claims.csv"
    pd.read_csv(other).assign(runs="one with more methods").to_csv(other, index=False)
    _, _, row, _, chance = summary(reference).splitlines()
    assert row == "| `quick` | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 | 1 | 0 of 1 |"
    assert chance.endswith(" would hold on average (5 %).")


def test_the_papers_are_found_to_be_what_their_claims_say(reference):
    """Nothing is said of a paper without the claims that it rests on."""
    (row,) = [row for row in findings(reference).splitlines() if "2302.07937" in row]
    assert row.endswith(f"{about_papers()['A']['claims']} |  | 1 | 0 | 0 |")
    rows = findings(REFERENCE).splitlines()[2:]
    assert [row[:24] for row in rows] == [f"| **[{x}](docs/paper-{x.lower()}.md)" for x in "ABCD"]
    for letter, row in zip("ABCD", rows, strict=True):
        said = [each["says"] for each in about_papers()[letter]["found"]]
        assert any(sentence in row for sentence in said)


def test_the_overview_is_drawn_from_the_reference():
    width, height = struct.unpack(">II", overview.drawn(REFERENCE)[16:24])
    assert width == 1680 and 900 < height < 1300


def test_the_overview_says_nothing_that_does_not_hold(tmp_path):
    for figure, _ in overview.PANELS.values():
        shutil.copytree(REFERENCE / figure, tmp_path / figure)
    path = tmp_path / "quick" / "conserved" / "claims.csv"
    claims = pd.read_csv(path)
    claims.loc[claims["claim"] == "relu-limit", "verdict"] = "undecided"
    claims.to_csv(path, index=False)
    with pytest.raises(InputError, match="conserved: what the overview says"):
        overview.drawn(tmp_path)


def test_what_does_not_hold_is_listed_once_with_its_scales_and_numbers(reference):
    (row,) = fails(reference).splitlines()[2:]
    assert row == "| *additional* | b \\| c. | `quick` | 2; in all | `fig4` |"
    assert len(undecided(reference).splitlines()) == 2
    shutil.copytree(reference / "quick", reference / "paper")
    path = reference / "paper" / "fig4" / "claims.csv"
    claims = pd.read_csv(path).assign(verdict=["undecided", "fails"], measured=["0.9", "3"])
    claims.to_csv(path, index=False)
    (row,) = fails(reference).splitlines()[2:]
    assert "| `quick`, `paper` | 3; in all | `fig4` |" in row
    (row,) = undecided(reference).splitlines()[2:]
    assert row.startswith("| A | a. | `paper` | 0.9 | Neither the statement nor")
    claims.assign(left_out=[0.5, 0.0], note="half excluded").to_csv(path, index=False)
    (row,) = undecided(reference).splitlines()[2:]
    assert row == "| A | a. | `paper` | 0.9 | half excluded | `fig4` |"
    claims.assign(verdict=["undecided", "holds"]).to_csv(path, index=False)
    assert "| `quick`; holds at `paper` | 2; in all |" in fails(reference)


def test_benchmarks_that_are_kept_become_a_table(tmp_path):
    measured_here = tmp_path / "outputs"
    measured_here.mkdir()
    columns = {"study": "study", "work": "what", "speedup": "times", "machine": "on"}
    machines = {"bn_only": "AMD EPYC", "linear": "Xeon"}
    tables = []
    for number, (study, processor) in enumerate(machines.items(), 1):
        (measured_here / f"{study}.csv").write_text(f"study,work,speedup\n{study},d=10,18.25\n")
        rates = {"float32_gflops": 111.6, "float64_gflops": 60.2}
        about = {"device": "cpu", "processor": processor, **rates}
        (measured_here / f"{study}.provenance.json").write_text(json.dumps(about))
        assert len(keep_benchmarks(measured_here, tmp_path)) == 2 * number
        tables.append(measured(tmp_path, "", columns).splitlines())
    of_one, of_two = tables
    assert (of_one[0], of_one[2]) == ("| study | what | times |", "| bn_only | d=10 | 18 |")
    assert of_two[0] == "| study | what | times | on |"
    assert of_two[2] == "| bn_only | d=10 | 18 | AMD EPYC: 112 / 60 GFLOP/s |"
    assert [short(value) for value in (float("nan"), 0.1234, 3.0, 41.7)] == ["", "0.12", "3", "42"]


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("head\n<!-- x: begin -->\nold\n<!-- x: end -->\nfoot\n")
    for _ in range(2):
        write_between(path, "x", "new")
        expected = "head\n<!-- x: begin -->\nnew\n<!-- x: end -->\nfoot\n"
        assert path.read_text() == expected
    with pytest.raises(InputError, match="has no marks"):
        write_between(path, "y", "new")


def test_a_page_has_every_kept_figure_with_its_caption_and_its_picture(tmp_path):
    kept, reference, pictures = REFERENCE / "quick" / SMALL, tmp_path / "kept", tmp_path / "drawn"
    for scale in ("quick", "medium", "paper"):
        (reference / scale).mkdir(parents=True)
        (reference / scale / SMALL).symlink_to(kept)
    page = captioned(reference)
    assert page.count("## ") == 2 and f"![{SMALL}]({SMALL}.png)" in page
    assert f"## `make {SMALL} SCALE=paper`\n\n![" in page and f"({SMALL}-paper.png)" in page
    assert "Paper D, Example 20" in page and "scale: quick." in page and "scale: paper." in page
    for scale in ("quick", "paper"):
        (reference / scale / SMALL).unlink()
    assert drawn(reference) == [(SMALL, "medium")]
    pictures.mkdir()
    (pictures / f"{SMALL}-paper.png").write_text("of what is kept no more")
    draw_pictures(reference, pictures)
    (picture,) = pictures.iterdir()
    assert picture.name == f"{SMALL}-medium.png"
    whole = KeptFigure.of(kept).png()
    drawn_whole, with_palette = (np.asarray(Image.open(png).convert("RGB")).astype(int)
                                 for png in (BytesIO(whole), picture))  # fmt: skip
    assert (np.abs(drawn_whole - with_palette).max(2) > 24).mean() < 0.01, "no eye sees it"
    assert picture.stat().st_size < len(whole) / 2
    since = picture.stat().st_mtime_ns
    draw_pictures(reference, pictures)
    assert picture.stat().st_mtime_ns == since, "its pixels are the same"
