"""Pictures: sheet, header, rail, names, styles; and that they leave a user's matplotlib alone."""

import importlib
import subprocess
import sys
from io import BytesIO
from itertools import combinations
from math import inf, nan
from operator import attrgetter

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from runner.core.errors import InputError
from runner.core.papers import papers
from runner.core.settings import Settings
from runner.results.finishing import fit, save, settle, shrink
from runner.results.formats import STYLES, WIDTH, WIDTHS, Format, drawn_in
from runner.results.labels import names_in
from runner.results.looks import looks_of
from runner.results.style import (
    BLUE,
    VERMILION,
    Look,
    canvas,
    in_two,
    name_ends,
    rail,
    shades,
    sheet,
    ticks,
)


def test_importing_drawings_changes_no_backend_and_needs_no_pyplot():
    code = (
        "import sys, matplotlib; matplotlib.use('svg'); import runner.results.figure,"
        " runner.papers.batch_norm_rank.rank_collapse.figures;"
        " assert matplotlib.get_backend() == 'svg', matplotlib.get_backend();"
        " assert matplotlib.rcParams['font.size'] == 10;"
        " assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.fixture
def axes():
    """The axes of a sheet with one panel."""
    return sheet(1, 1)[1][0, 0]


def size_of(picture, **options) -> tuple[int, int]:
    """Pixels of a saved picture."""
    file = BytesIO()
    picture.savefig(file, format="png", **options)
    return Image.open(file).size


@pytest.mark.parametrize("made", [lambda: sheet(1, 2, height=4.0)[0], lambda: canvas(4.0)])
def test_a_picture_is_saved_with_its_header_and_without(made):
    with drawn_in("screen"):
        picture = made()
        bare = size_of(picture)
        assert bare == (1680, 800), "8.4 inches at 200 dpi, and no more than the body"
        picture.add_header("Paper A", "short")
        one = size_of(picture)
        assert one[0] == 1680 and 0.4 < (one[1] - bare[1]) / 200 < 0.8
        assert size_of(picture, header=False) == bare
        assert not ink(picture, 4.0 + picture.head + 0.05), "nothing of the header is cut off"
        assert isinstance(picture, Figure) and picture._repr_png_().startswith(b"\x89PNG")
        longer = made()
        longer.add_header("Paper A", "a word and another " * 7)
        assert size_of(longer)[1] - one[1] == pytest.approx(0.24 * 200, abs=2)
        longest = made()
        longest.add_header("Paper A · " * 20, "a word and another " * 7)
        assert size_of(longest)[1] - one[1] == pytest.approx(0.42 * 200, abs=2)
        assert not ink(longest, 4.0 + longest.head + 0.02), "both lines of the source are shown"


def ink(picture, above: float) -> bool:
    """Whether anything is drawn so many inches above the foot of a picture."""
    file = BytesIO()
    Figure.savefig(picture, file, format="png", dpi=100)
    pixels = np.asarray(Image.open(file).convert("L"))
    return bool((pixels[: round((picture.get_figheight() - above) * 100)] < 250).any())


def test_on_paper_a_picture_is_as_wide_as_a_page_in_another_font():
    with drawn_in("paper"):
        picture, ((axes,),) = sheet(1, 1, height=4.2)
        Look(BLUE).line(axes, [1, 2], [1, 2])
        shrink(picture)
        page = WIDTHS["page"]
        assert size_of(picture) == pytest.approx((page * 300, 4.2 * page / WIDTH * 300), abs=1)
        assert axes.lines[0].get_linewidth() == pytest.approx(2.4 * page / WIDTH)
        assert matplotlib.rcParams["font.family"][0] == "STIXGeneral"
    assert matplotlib.rcParams["font.family"] != ["STIXGeneral"]


def test_files_of_equal_pictures_are_equal_whatever_the_layout_rounds(tmp_path):
    """The solver of the layout differs in the last digits of positions, which name clip paths."""
    for number in range(2):
        with drawn_in("screen"):
            picture = canvas(3.0)
            axes = picture.subplots()
            Look(BLUE).line(axes, [1, 2], [1, 2])
            picture.draw_without_rendering()
            picture.set_layout_engine(None)
            bounds = axes.get_position().bounds
            axes.set_position([bounds[0], bounds[1], bounds[2] + 1e-15 * number, bounds[3]])
            save(picture, tmp_path / f"{number}", ["png", "pdf", "svg"])
    for end in ("png", "pdf", "svg"):
        assert (tmp_path / f"0.{end}").read_bytes() == (tmp_path / f"1.{end}").read_bytes(), end


def texts_inside(picture) -> bool:
    """Whether no text of a picture is cut at its edge."""
    picture.draw_without_rendering()
    boxes = [text.get_window_extent() for axes in picture.axes for text in axes.texts]
    boxes += [axes.get_tightbbox() for axes in picture.axes]
    x0, x1 = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    return x0 > -0.5 and x1 < picture.bbox.width + 0.5


def named_sheet(form: Format, **options):
    """A sheet of two panels whose names and labels need room at both sides."""
    with drawn_in(form):
        picture, axes = sheet(1, 2, **options)
        for panel in axes.flat:
            Look(BLUE).line(panel, [1, 2], [1, 2])
            panel.set_ylabel("a label of\ntwo lines")
            name_ends(panel, [(1.5, "a long name of a line", Look(BLUE))])
        fit(picture)
        shrink(picture)
    return picture, axes


@pytest.mark.parametrize("size", ["column", "3.3", "3.3x4", "5x3", "page"])
def test_a_picture_has_the_size_that_was_asked_for_and_cuts_nothing(size):
    picture, axes = named_sheet(Format("paper", size))
    width, height = Format("paper", size).inches
    assert picture.get_figwidth() == pytest.approx(width) and axes.shape == (1, 2)
    assert height is None or picture.get_figheight() == pytest.approx(height)
    first, second = (panel.get_position() for panel in axes.flat)
    assert (first.y0 > second.y1) == (width < 4), "in a column below each other"
    if width < 4:
        assert texts_inside(picture)
    sizes = {text.get_fontsize() for panel in axes.flat for text in panel.texts}
    assert min(sizes) == pytest.approx(picture.points) and picture.points > 7.49


def test_panels_that_share_rows_stay_beside_each_other():
    picture, axes = named_sheet(Format("paper", "column"), beside=True)
    assert axes[0, 0].get_position().x1 < axes[0, 1].get_position().x0 and picture.points < 6


def test_without_a_header_there_is_no_room_for_one():
    for form in (Format("screen", header=False), Format("paper"), Format("screen", "page")):
        with drawn_in(form):
            assert sheet(1, 1, height=3.0)[0].get_figheight() == 3
    with drawn_in("screen"):
        assert sheet(1, 1, height=3.0)[0].get_figheight() > 4


def test_a_color_of_a_style_file_reaches_line_marker_and_name(tmp_path, axes, caplog):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "# mine\n\nsgd: '#d62728'\nfont.family: serif  # a font\nother: red\naxes.linewidth: 2\n"
    )
    look = Look(BLUE)
    with drawn_in(Format(str(path)), {"sgd": look}):
        assert matplotlib.rcParams["font.family"] == ["serif"]
        assert matplotlib.rcParams["axes.linewidth"] == 2
        look.line(axes, [1, 2], [1, 2])
        look.name(axes, 1, 1, "SGD")
        (line,), (text,) = axes.lines, axes.texts
        colors = {line.get_color(), line.get_markerfacecolor(), look.color}
        assert colors == {"#d62728"} and text.get_color() == look.ink != Look("#0072B2AA").ink
        assert set(shades([1], BLUE, BLUE).values()) == {"#d62728"}
    assert look.color == BLUE and "no series of this figure is called other" in caplog.text
    path.write_text("axes.prop_cycle: cycler('color', ['k', 'r'])\nfont.size: 5.5\n")
    with drawn_in(Format(str(path), "page")):
        assert look.color == "#000000" and Look(VERMILION).color == "#ff0000"
        assert sheet(1, 1)[0].points == 5.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("font.famly: serif", "did you mean 'font.family'"),
        ("zzz.qqq: 3", r"zzz.qqq: the nearest of \d+ names are \S+, \S+, \S+$"),
        ("sgd: no-color", "no-color is no color"),
        ("axes.linewidth: wide", "axes.linewidth: wide"),
        ("just words", "just words: a line must be `key: value`"),
        ("sgd: #d62728", "a line must be `key: value`"),
        ("font.size: big", "font.size: big: give a number of points, as in 8"),
        ("font.size: 0", "give a number of points"),
        ("font.family: Nofont", "font.family: Nofont is not installed"),
        ("text.usetex: true", "LaTeX is not installed"),
    ],
)
def test_a_wrong_line_of_a_style_file_is_named(text, message, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without LaTeX
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with (
        pytest.raises(InputError, match=message) as error,
        drawn_in(Format(str(path)), {"sgd": Look(BLUE)}),
    ):
        pass
    assert "\n" not in str(error.value)


def test_an_unknown_style_or_size_is_refused():
    for size in ("huge", "0x3", "3x", "-3"):
        with pytest.raises(InputError, match="size="), drawn_in(Format("paper", size)):
            sheet(1, 1)
    with pytest.raises(InputError, match="mine.yaml is no file"), drawn_in("mine.yaml"):
        pass

    assert Settings.__dataclass_fields__["style"].default in STYLES
    message = "style=papr is unknown: did you mean 'paper'"
    with pytest.raises(InputError, match=message), drawn_in("papr"):
        pass


def test_a_finding_is_broken_where_its_lines_have_one_length_or_behind_a_sign():
    assert in_two("short, and in one line") == ["short, and in one line"]
    first = "the construction is exact from width m = d²;"
    second = "SGD on the same parameters ends at 4 to 15 % of the variance"
    assert in_two(f"{first} {second}") == [first, second]
    for sign in ("85 %", "p = 3"):
        lines = in_two(f"{'a word of it ' * 4}{'ends at ' * 2}{sign} {'of the other words ' * 4}")
        assert len(lines) == 2 and any(sign in line for line in lines)
    one, two = in_two("word " * 30)
    assert abs(len(one) - len(two)) <= 5 and len(one) + len(two) == 30 * 5 - 2


def test_what_is_beyond_the_end_or_lost_lies_on_the_rail(axes):
    place = rail(axes, 1e-3, 10.0, lanes=2)
    upper, lower = place([0.0, 1e-9, nan, 0.5, 20.0], 0), place([0.0, 1.0], 1)
    assert upper[3] == 0.5 and upper[4] == 20.0 and lower[1] == 1.0, "on the scale as they are"
    assert len({*upper[:3]}) == 1 and axes.get_ylim()[0] < upper[0] < 1e-3
    assert lower[0] > upper[0] or lower[0] < upper[0], "in another lane"
    loss = rail(axes, 2.5, 0, "diverged", log=False)
    assert loss([nan, inf, 1.0])[:2].min() > 2.5 and loss([1.0])[0] == 1.0


def test_names_at_the_ends_of_lines_do_not_touch_and_keep_their_order(axes):
    axes.set_ylim(0, 1)
    look = Look(BLUE)
    ends = [(0.5, "b", look), (0.501, "c\nc", look), (0.499, "a", look), (nan, "gone", look)]
    name_ends(axes, ends)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert "gone" not in heights and heights["a"] < heights["b"] < heights["c\nc"]
    assert heights["b"] - heights["a"] > 0.04
    name_ends(axes, [])


def test_a_name_stands_at_its_line_on_any_scale_and_not_outside_of_the_axes(axes):
    axes.set(xscale="log", yscale="log", xlim=(1, 100), ylim=(1, 100))
    look = Look(BLUE)
    look.name_at(axes, [1, 100], [1, 100], "half way", 10)
    assert axes.texts[0].xy == pytest.approx((10, 10))
    look.name(axes, 1000, 10, "outside")
    assert [text._check_xy() for text in axes.texts] == [True, False]


def looks_by_table(paper: str) -> dict[str, dict]:
    """The looks of a paper: by column of its table of names, or by the tuple in its `looks.py`."""
    names = names_in(f"runner.papers.{paper}").values
    module = importlib.import_module(f"runner.papers.{paper}.looks")
    tables = {column: looks_of(table) for column, table in names.items()}
    for name, value in vars(module).items():
        rows = dict(enumerate(value)) if isinstance(value, tuple) else value
        if isinstance(rows, dict) and all(isinstance(look, Look) for look in rows.values()):
            tables[name] = rows
    return {name: looks for name, looks in tables.items() if looks}


def grey(look: Look) -> float:
    """The lightness of its colour in grey print."""
    return float(np.dot(matplotlib.colors.to_rgb(look.color), (0.3, 0.59, 0.11)))


@pytest.mark.parametrize("paper", papers())
def test_no_two_methods_differ_by_their_hue_alone(paper):
    form = attrgetter("marker", "dashes", "width", "hollow")
    for name, looks in looks_by_table(paper).items():
        for (one, first), (other, second) in combinations(looks.items(), 2):
            differs = form(first) != form(second) or abs(grey(first) - grey(second)) > 0.08
            assert differs, f"{name}: {one}, {other}"
    assert looks_by_table(paper)


def test_a_name_can_be_read_on_white():
    for color in ("#E69F00", "#56B4E9", "#009E73", "#a8d8f0"):
        assert grey(Look(Look(color).ink)) <= 0.37


def test_ordered_values_get_darker():
    colors = shades([1, 2, 3, 4], "#ffffff", "#0072B2", "#000000").values()
    lightness = [grey(Look(color)) for color in colors]
    assert lightness == sorted(lightness, reverse=True) and len(set(lightness)) == 4
    assert shades([7], "#ffffff", "#000000") == {7: "#ffffff"} and shades([], "#ffffff") == {}


def test_ticks_are_plain_numbers_where_they_are_wanted_and_no_others(axes):
    axes.set(xscale="log", xlim=(0.5, 2000))
    ticks(axes.xaxis, [0.5, 10, 1000])
    axes.figure.draw_without_rendering()
    written = [each.get_text() for each in axes.xaxis.get_ticklabels(which="both")]
    assert written == ["0.5", "10", "1,000"]


def test_a_line_of_one_point_shows_a_mark_and_a_longer_one_has_none(axes):
    for y in ([nan, 0.5], [0.4, 0.5]):
        Look(BLUE).line(axes, [0, 1], y, marker="")
    assert [line.get_marker() for line in axes.lines] == ["o", ""]


def test_a_logarithmic_axis_has_ticks_within_a_decade_and_is_linear_without_anything_positive(axes):
    axes.set(xscale="log", yscale="log", xlim=(0.08, 0.6))
    axes.viewLim.intervaly = (0, 0)  # as of runs that diverged
    settle(axes.figure)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert [tick for tick in axes.get_xticks() if 0.08 <= tick <= 0.6] == [0.1, 0.2, 0.5]


def test_a_logarithmic_axis_from_below_zero_begins_below_its_smallest_positive_point(axes):
    Look(BLUE).line(axes, [1, 2, 3], [-1, 0.2, 0.8])
    axes.set(ylim=(-1.1, 0.9), yscale="log")
    settle(axes.figure)
    assert axes.get_yscale() == "log" and axes.get_ylim() == pytest.approx((0.16, 0.9))


@pytest.mark.parametrize(
    "change", [{"yscale": "log"}, {"ylim": (0.01, 100), "yscale": "log"}, {"ylim": (-50, 60)}]
)
@pytest.mark.parametrize("size", ["", "3.3x3"])
def test_names_ticks_and_margins_follow_a_scale_that_the_user_changes(change, size):
    """The scale is changed after the picture is finished, as the page on building shows."""
    with drawn_in(form := Format("paper", size)):
        picture, ((axes,),) = sheet(1, 1, right=1.2)
        heights = {"low": 2.0, "high": 40.0}
        axes.set(xlim=(1, 2), ylim=(0, 45))
        for height in heights.values():
            Look(BLUE).line(axes, [1, 2], [45, height])
        name_ends(axes, [(height, name, Look(BLUE)) for name, height in heights.items()])
        settle(picture)
        if form.size:
            fit(picture)
        shrink(picture)
    axes.set(**change)
    assert texts_inside(picture), "draws it"
    for name in axes.texts:
        line = axes.transData.transform((2, heights[name.get_text()]))[1]
        assert abs(axes.transAxes.transform(name.get_position())[1] - line) < 1
    assert not axes.yaxis.get_minorticklocs().size


def test_names_have_room_beside_their_column_and_at_the_right_of_a_stack():
    rooms: dict = {"gap": 0.25, "right": 0.2, "names": {0: 1.5}}
    picture, ((large, small, last),) = sheet(1, 3, ratios=(2, 1, 1), **rooms)
    boxes = [axes.get_position() for axes in (large, small, last)]
    inches = [picture.body[0] * x for box in boxes for x in (box.x0, box.x1)]
    gaps = [b - a for a, b in zip(inches[1::2], inches[2::2], strict=False)]
    assert gaps == pytest.approx([1.75, 0.25]) and picture.body[0] - inches[-1] == pytest.approx(
        0.2
    )
    assert boxes[0].width == pytest.approx(2 * boxes[1].width)
    with drawn_in(Format("paper", "column")):
        picture, ((top, *_),) = sheet(1, 3, ratios=(2, 1, 1), **rooms)
    assert picture.body[0] * (1 - top.get_position().x1) == pytest.approx(1.5)
