"""Every figure is drawn and every claim judged: from the kept tables, and by the real command."""

import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from repository import REPOSITORY
from runner.results.figures import header_of, publish
from runner.results.paper_figures import PaperFigure

from runner.core.catalogue import (
    configs,
    figure_names,
    figure_study,
    headline,
    paper_folder,
    part_of,
)
from runner.core.papers import PAPERS
from runner.publish.kept_figure import read_tables
from runner.results import figures
from runner.results.claims import COLUMNS, claims_of
from runner.results.style import LARGE, SMALL, WIDTH, in_two

REFERENCE = REPOSITORY / "outputs" / "reference"
KEPT = sorted(path.parent for path in REFERENCE.glob("*/*/claims.csv"))


@pytest.mark.parametrize("study", configs())
def test_a_study_lists_drawings_and_claims_of_its_own_figures_each_once(study):
    """What a figure finds rests on claims of its own: nothing is said without one behind it."""
    drawings, claims = part_of(study, "figures").FIGURES, part_of(study, "claims").CLAIMS
    own = [name for name in figure_names() if figure_study(name) == study]
    assert sorted(each.figure for each in drawings) == sorted(claims) == sorted(own)
    for drawing in drawings:
        names = [claim.name for claim in claims[drawing.figure]]
        assert names and len(set(names)) == len(names)
        for finding in drawing.findings:
            assert finding.rests_on and set(finding.rests_on) <= set(names)


def check_header(figure: PaperFigure, tables: dict, judged: pd.DataFrame) -> None:
    """It has room, and no finding without its claims: as if nothing had been decided."""
    above = header_of(figure, tables, judged)
    assert not re.search(r"\bnan\b|\binf\b", above.finding)
    lines = in_two(above.finding)
    picture = Figure(figsize=(WIDTH, 2), dpi=100)
    for line in [*lines, above.what]:
        size = {"size": LARGE, "weight": "bold"} if line in lines else {"size": SMALL}
        text = picture.text(0.1 / WIDTH, 0.5, line, **size)
        assert text.get_window_extent().x1 < 100 * WIDTH, line
    plain = figure.headline.partition(": ")[2]
    none = header_of(figure, tables, judged.assign(verdict="nothing of the kind"))
    assert none.finding == plain[:1].upper() + plain[1:]


def test_every_figure_is_kept_at_scale_quick():
    kept = {folder.name for folder in KEPT if folder.parent.name == "quick"}
    drawn = figure_names("quick")
    assert kept == {name for name in drawn if paper_folder(figure_study(name)) in PAPERS}
    assert "rank-fig12" in set(figure_names()) - set(drawn), "it would repeat figures 4 and 11"


def marks_in(picture: Figure) -> set[str]:
    """What of a picture must be explained: bars and bands."""
    found = set()
    for axes in picture.axes:
        if any(isinstance(each, ErrorbarContainer) and each.has_yerr for each in axes.containers):
            found.add("bars")
        if any(isinstance(each, FillBetweenPolyCollection) for each in axes.collections):
            found.add("band")
    return found


def without_dust(claims: pd.DataFrame) -> pd.DataFrame:
    """Claims with 0 for what rounding leaves of it, which differs between processors."""
    dust = r"-?\d(\.\d+)?e-(1[5-9]|2\d)"
    said = claims[["measured", "note"]].astype(str)
    words = {name: said[name].str.replace(dust, "0", regex=True) for name in said}
    return claims.assign(**words)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_figure_is_explained_and_its_claims_come_out_as_kept(folder, tmp_path, monkeypatch):
    """It is rendered at scale quick; files of pictures, which take longer, are written below."""
    name, scale, tables, pictures = folder.name, folder.parent.name, read_tables(folder), []

    def render(picture: Figure, path: Path) -> None:
        if scale == "quick":
            picture.canvas.draw()
        pictures.append(picture)

    monkeypatch.setattr(figures, "save", render)
    figure = PaperFigure(name, scale, name, (), (), tmp_path, headline("figure", name))
    publish(figure, tables)
    claims, kept = pd.read_csv(figure.path("claims.csv")), pd.read_csv(folder / "claims.csv")
    check_header(figure, tables, kept)
    now, then = without_dust(claims), without_dust(kept[list(COLUMNS)])
    pd.testing.assert_frame_equal(now, then, rtol=1e-9, atol=1e-14)
    assert len(pd.read_csv(figure.path("csv")))
    caption = figure.path("caption.txt").read_text()
    assert len(caption) > 200 and "seed" in caption
    assert caption == (folder / "caption.txt").read_text()
    for mark in marks_in(pictures[0]):
        assert mark in caption, f"what are the {mark}?"


@pytest.mark.long
def test_make_figures_at_scale_smoke(smoke_figures):
    done = smoke_figures
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    folder = done.outputs / "figures" / "smoke"
    for name in figure_names():
        for end in ("png", "pdf", "svg", "csv", "claims.csv", "caption.txt", "provenance.json"):
            assert (folder / f"{name}.{end}").stat().st_size > 50, f"{name}.{end}"
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (folder / f"{name}.svg").read_text()[:1000]
        judged = set(pd.read_csv(folder / f"{name}.claims.csv")["claim"])
        assert judged == {each.name for each in claims_of(name, figure_study(name))}
    assert f"{len(figure_names())} figures in" in done.stdout
    judged = pd.read_csv(folder / "first-order.claims.csv").set_index("claim")["verdict"]
    assert judged["theorem-1"] == "holds", "as at any size"
