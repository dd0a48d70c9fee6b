"""Every figure is drawn and every claim judged: from the kept tables, and by the real command."""

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
import warm
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from overlaps import overlaps
from reference import JUDGED, NO_NUMBERS, ignore_rounding, numbers_judged
from repository import REPOSITORY
from samples import samples

from runner.commands.kept import KeptFigure, read_csv
from runner.compose.orders import paper_figure
from runner.core.catalogue import configs, figure_names, figure_study, paper_folder, part_of
from runner.core.papers import papers
from runner.results import figure as results
from runner.results.claims import COLUMNS, claims_of
from runner.results.drawing import upper
from runner.results.quantities import Quantity
from runner.results.style import LARGE, SMALL, WIDTH, in_two

REFERENCE = REPOSITORY / "outputs" / "reference"
KEPT = sorted((path.parent for path in REFERENCE.glob("*/*/claims.csv")), reverse=True)
"""First those of scale quick."""


def scale_and_name(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"


WRONG = {
    "a decimal without its zero": r"(?<![\d.\w])\.\d",
    "a % on another line than its number": r"\d\s*\n\s*%|\d %",
    "British spelling": r"(?i)(normali|initiali|regulari|optimi|generali|standardi)s(e|ing|ation)",
}


@pytest.mark.parametrize("study", configs())
def test_a_study_lists_drawings_and_claims_of_its_own_figures_each_once(study):
    """What a figure finds rests on claims of its own: nothing is said without one behind it."""
    drawings, claims = part_of(study, "figures").FIGURES, part_of(study, "claims").CLAIMS
    own = [name for name in figure_names() if figure_study(name) == study]
    assert sorted(drawing.figure for drawing in drawings) == sorted(claims) == sorted(own)
    for drawing in drawings:
        names = [claim.name for claim in claims[drawing.figure]]
        assert names and len(set(names)) == len(names)
        for finding in drawing.findings:
            assert finding.rests_on and set(finding.rests_on) <= set(names)


def test_every_figure_is_kept_at_scale_quick():
    kept = {folder.name for folder in KEPT if folder.parent.name == "quick"}
    drawn = figure_names("quick")
    assert kept == {name for name in drawn if paper_folder(figure_study(name)) in papers()}
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


WORDS = 20
"""Largest number of words of a headline. Signs that stand alone, such as = and %, do not count."""


def check_header(figure: KeptFigure, tables: dict) -> None:
    """It has room, and no finding without its claims: as if nothing had been decided."""
    above = figure.header(tables, figure.claims())
    assert not re.search(r"\bnan\b|\binf\b", above.finding)
    lines = in_two(above.finding)
    assert len(re.findall(r"\S*\w\S*", above.finding)) <= WORDS, above.finding
    picture = Figure(figsize=(WIDTH, 2), dpi=100)
    for line in [*lines, *in_two(above.what, SMALL, "normal")]:
        size = {"size": LARGE, "weight": "bold"} if line in lines else {"size": SMALL}
        text = picture.text(0.1 / WIDTH, 0.5, line, **size)
        assert text.get_window_extent().x1 < 100 * WIDTH, line
    none = figure.header(tables, figure.claims().assign(verdict="nothing of the kind"))
    assert none.finding == upper(figure.title.partition(": ")[2])
    words = ("\n".join(lines), above.what)
    require_well_written(*(text.replace(" %", "\u00a0%") for text in words))


def require_well_written(*texts: str) -> None:
    """One spelling, decimals in full, numbers with their %."""
    for text in texts:
        for what, pattern in WRONG.items():
            assert not (found := re.search(pattern, text)), f"{what}: {found}"


@pytest.fixture(scope="module")
def stored_numbers():
    """The stored numbers that the rules judge, by scale and figure."""
    numbers = read_csv(REFERENCE / JUDGED, dtype={"point": str})
    return {tuple(key): rows for key, rows in numbers.groupby(["scale", "figure"])}


def test_stored_numbers_are_of_kept_figures(stored_numbers):
    assert {*stored_numbers} <= {(folder.parent.name, folder.name) for folder in KEPT}


@pytest.fixture
def measured_once(monkeypatch):
    """A quantity is measured once, for its verdict and for the number that is stored of it."""
    measure, known = Quantity.measure, {}

    def remembered(quantity, tables):
        if id(quantity) not in known:
            known[id(quantity)] = measure(quantity, tables)
        return known[id(quantity)].copy()

    monkeypatch.setattr(Quantity, "measure", remembered)


@pytest.mark.parametrize("folder", samples(KEPT, lambda folder: folder.name, scale_and_name))
def test_a_figure_is_drawn_and_explained_and_its_claims_come_out_as_kept(
    folder, stored_numbers, measured_once, tmp_path, monkeypatch
):
    """No text lies on another, and none speaks of text outside the picture.

    Files of pictures, which take longer, are written below.
    """
    pictures = []
    monkeypatch.setattr(results, "save", lambda picture, path: pictures.append(picture))
    monkeypatch.setattr(results.Figure, "_sums", lambda figure: {})  # of files that save writes
    figure = KeptFigure.of(folder, tmp_path)
    tables = figure.tables()
    judged = figure.save(tables)
    now = without_dust(pd.read_csv(StringIO(judged.to_csv(index=False))))
    then = without_dust(pd.read_csv(folder / "claims.csv")[list(COLUMNS)])
    pd.testing.assert_frame_equal(now, then, rtol=1e-9, atol=1e-14)
    stored = stored_numbers.get((folder.parent.name, folder.name), NO_NUMBERS)
    _, changed = ignore_rounding(numbers_judged(folder, tables), stored)
    assert not changed
    check_header(figure, tables)
    assert len(pd.read_csv(figure.path("csv")))
    caption = figure.path("caption.txt").read_text()
    assert len(caption) > 200 and "seed" in caption
    assert caption == (folder / "caption.txt").read_text()
    require_well_written(caption)
    for mark in marks_in(pictures[0]):
        assert mark in caption.lower(), f"what are the {mark}?"
    pictures[0].draw_without_rendering()
    assert not overlaps(pictures[0])
    assert "headline" not in " ".join(text.get_text() for text in pictures[0].findobj(Text))


ALONE = """
import sys
from pathlib import Path
from runner.commands.kept import KeptFigure, read_csv
figure = KeptFigure.of(Path(sys.argv[1]))
figure.numbers(), figure.judge(), figure.caption()
print(*sorted({name.split(".")[2] for name in sys.modules if name.startswith("runner.papers.")}))
"""


def test_a_figure_imports_the_package_of_its_own_paper_alone():
    words = [sys.executable, "-c", ALONE, REFERENCE / "quick" / "bottleneck-example20"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bottleneck_structure"]


FEW = ("bottleneck-example20", "fig4", "low-rank-training", "rank-fig3b")
"""A figure of each paper that takes seconds."""


@pytest.mark.long
@pytest.mark.parametrize(
    "names", samples([[*FEW], figure_names()], lambda _: "figures", lambda names: str(len(names)))
)
def test_make_figures_at_scale_smoke(names, tmp_path):
    """By the command that `make figures` carries out, with names where it is not all figures."""
    recipe = ["make", "--dry-run", "figures", "SCALE=smoke", "JOBS=1", f"OUTPUTS={tmp_path}"]
    told = subprocess.run(recipe, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    (words,) = re.findall(r"^\S+ (-m runner figures .*)$", told.stdout, re.M)
    done = warm.run(*words.split(), *(names if len(names) == len(FEW) else ()), timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    folder = tmp_path / "figures" / "smoke"
    for name in names:
        for end in ("png", "pdf", "svg", "csv", "claims.csv", "caption.txt", "provenance.json"):
            assert (folder / f"{name}.{end}").stat().st_size > 50, f"{name}.{end}"
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (folder / f"{name}.svg").read_text()[:1000]
        judged = set(pd.read_csv(folder / f"{name}.claims.csv")["claim"])
        assert judged == {each.name for each in claims_of(name, figure_study(name))}
        picture, _ = paper_figure(name, ["scale=smoke", f"outputs={tmp_path}"]).drawn()
        picture.draw_without_rendering()
        assert not overlaps(picture), name
    assert f"{len(names)} figures in" in done.stdout
    judged = pd.read_csv(folder / "bottleneck-example20.claims.csv")
    assert set(judged["verdict"]) == {"holds"}, "as at any size"
