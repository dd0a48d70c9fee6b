"""Pictures: their looks, their styles, and that they leave a user's matplotlib alone."""

import importlib
import subprocess
import sys
from math import nan

import matplotlib
import pytest
from matplotlib.figure import Figure

from runner.core.errors import InputError
from runner.core.papers import PAPERS
from runner.results.style import (
    COLUMN,
    PAGE,
    STYLES,
    Look,
    beside,
    drawn_in,
    name_hidden,
    ordered,
    points,
    settle_scales,
    sparse,
    subplots,
)


def test_importing_drawings_changes_no_backend_and_needs_no_pyplot():
    code = (
        "import sys, matplotlib; matplotlib.use('svg'); import runner.results.figures,"
        " runner.papers.rank_collapse.depth.figures;"
        " assert matplotlib.get_backend() == 'svg', matplotlib.get_backend();"
        " assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_picture_shows_itself_in_a_notebook():
    picture, axes = subplots(size=(3, 2))
    axes.plot([1, 2])
    assert isinstance(picture, Figure)
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_on_paper_a_picture_is_a_column_or_a_page_wide_in_other_fonts():
    screen = matplotlib.rcParams["font.family"]
    with drawn_in("paper"):
        assert subplots(size=(5, 4))[0].get_figwidth() == pytest.approx(COLUMN)
        wide, _ = subplots(1, 3, size=(11.5, 4))
        assert wide.get_figwidth() == pytest.approx(PAGE)
        assert wide.get_figheight() > 4 * PAGE / 11.5
        assert matplotlib.rcParams["mathtext.fontset"] == "cm" and points(1) < 1
    assert matplotlib.rcParams["font.family"] == screen
    with drawn_in("screen"):
        assert points(1) == 1
    assert subplots(size=(5, 4))[0].get_figwidth() == pytest.approx(5)


def test_a_style_that_there_is_not_is_explained():
    message = "style=papr is not known: did you mean 'paper'"
    with pytest.raises(InputError, match=message), drawn_in("papr"):
        pass


def test_the_styles_are_those_of_the_command():
    from runner.cli.settings import CommandSettings

    field = CommandSettings.__dataclass_fields__["style"]
    assert set(field.metadata["choices"]) == set(STYLES) and field.default in STYLES


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_lines_that_end_on_each_other_are_named_and_no_others():
    _, axes = subplots(size=(4, 3))
    axes.set_ylim(0, 1)
    name_hidden(axes, {"a": 0.5, "b": 0.502, "c": 0.9, "gone": nan, "outside": 7.0})
    assert texts(axes) == ["b\na"]


@pytest.mark.parametrize(("third", "side"), [(0.54, "top"), (0.46, "center"), (0.9, "center")])
def test_the_names_of_hidden_lines_leave_free_the_line_above_them(third, side):
    _, axes = subplots(size=(4, 3))
    axes.set_ylim(0, 1)
    name_hidden(axes, {"a": 0.5, "b": 0.502, "c": third})
    assert texts(axes) == ["b\na"] and axes.texts[0].get_verticalalignment() == side


def test_what_has_no_place_on_an_axis_is_not_written_beside_it():
    _, axes = subplots(size=(4, 3))
    axes.set(yscale="log", ylim=(0.1, 10))
    for y in (0, -1, nan, 100):
        beside(axes, y, "nowhere")
    beside(axes, 1, "here")
    assert texts(axes) == ["here"]


@pytest.mark.parametrize("count", [1, 2, 5, 75])
def test_every_line_has_a_marker(count):
    for place in range(12):
        start, step = sparse(count, place)
        assert range(start, count, step)


def test_the_markers_of_neighbours_are_elsewhere():
    assert len({sparse(75, place)[0] for place in range(3)}) == 3


def looks_of(room: str) -> dict[str, dict]:
    """The looks of a room: by mapping, or by the place in a tuple."""
    module = importlib.import_module(f"runner.papers.{room}.looks")
    found = {}
    for name, value in vars(module).items():
        members = dict(enumerate(value)) if isinstance(value, tuple) else value
        is_mapping = isinstance(members, dict) and len(members) > 0
        if is_mapping and all(isinstance(each, Look) for each in members.values()):
            found[name] = members
    return found


@pytest.mark.parametrize("room", PAPERS)
def test_no_two_methods_differ_by_their_colour_alone(room):
    for name, looks in looks_of(room).items():
        for attribute in ("color", "marker"):
            values = [getattr(look, attribute) for look in looks.values()]
            assert len(set(values)) == len(values), f"{name}: {attribute}"
    assert looks_of(room)


def test_lengths_of_pretraining_look_alike_in_all_figures_and_never_like_each_other():
    from runner.papers.rank_collapse.looks import lengths

    assert lengths([75, 300]).items() <= lengths([300, 25, 75]).items()
    assert len(set(lengths([3, 6, 7]).values())) == 3


def test_ordered_values_get_lighter_and_differ_in_marker():
    looks = list(ordered(range(5)).values())
    lightness = [sum(matplotlib.colors.to_rgb(look.color)) for look in looks]
    assert lightness == sorted(lightness)
    assert len({look.marker for look in looks}) == 5


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((1.5, 6.5), ["2", "3", "4", "6"]),
        ((0.4, 3.5), ["0.4", "0.6", "1", "2", "3"]),
        ((0.004, 0.02), ["0.004", "0.006", "0.01", "0.02"]),
    ],
)
def test_less_than_a_decade_has_plain_numbers(limits, labels):
    picture = Figure(figsize=(4, 4))
    axes = picture.subplots()
    axes.semilogy([0, 1], limits)
    axes.set_ylim(limits)
    settle_scales(picture)
    picture.draw_without_rendering()
    ticks = axes.yaxis.get_ticklabels(which="both")
    shown = [each for each in ticks if limits[0] <= each.get_position()[1] <= limits[1]]
    written = sorted((each.get_text() for each in shown), key=lambda text: float(text or 0))
    assert [text for text in written if text] == labels


@pytest.mark.parametrize(
    ("limits", "labels"), [((15, 800), ["$3\\times10^{1}$", "$3\\times10^{2}$"]), ((5, 2000), [])]
)
def test_beside_a_single_power_of_ten_there_are_two_labels_more(limits, labels):
    picture = Figure(figsize=(2, 2))
    axes = picture.subplots()
    axes.loglog(limits, limits)
    axes.set_xlim(limits)
    settle_scales(picture)
    picture.draw_without_rendering()
    written = [each.get_text() for each in axes.xaxis.get_minorticklabels()]
    assert [text for text in written if text] == labels
