"""`runner show`: a figure of the reference at once, and clear words where there is none."""

import subprocess
import sys

import pandas as pd
import pytest
from PIL import Image
from repository import REPOSITORY

from runner.commands import show
from runner.commands.kept import KeptFigure
from runner.commands.show import describe, kept_scales, list_figures, main
from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.runs.provenance import REFERENCE

LIGHT = """
import sys
from pathlib import Path
from runner.commands.show import describe
describe("fig4", None, Path(sys.argv[1]))
print(*sorted({"torch", "numba", "sklearn"} & set(sys.modules)))
"""


def test_a_figure_is_shown_with_its_verdicts_and_its_picture(tmp_path, capsys):
    assert main(["bottleneck-example20", f"outputs={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "✓ holds" in said and "paper D, Example 20" in said
    path = tmp_path / "figures-from-reference" / "paper" / "bottleneck-example20.png"
    assert said.splitlines()[-1] == str(path) and path.read_bytes().startswith(b"\x89PNG")


def test_the_largest_scale_is_shown_and_the_others_are_named(tmp_path):
    """As the gallery counts them: at scale quick both claims of this figure hold."""
    said = describe("rank-pretraining", None, tmp_path).splitlines()
    assert said[0].startswith("rank-pretraining, scale=paper (the largest kept): ")
    judged = pd.read_csv(REFERENCE / "paper" / "rank-pretraining" / "claims.csv")
    verdicts = [line.split()[1] for line in said if line[:1] in "✓✗?"]
    assert sorted(verdicts) == sorted(judged["verdict"])
    others = [line for line in said if line.startswith("also kept: ")]
    assert others == ["also kept: runner show rank-pretraining scale=quick"]
    small = describe("rank-pretraining", "quick", tmp_path).splitlines()
    assert small[0].startswith("rank-pretraining, scale=quick: ")
    assert "also kept: runner show rank-pretraining scale=paper" in small


def test_a_wheel_shows_quick_and_says_where_the_others_are(tmp_path, monkeypatch):
    (tmp_path / "quick").symlink_to(REFERENCE / "quick")
    monkeypatch.setattr(show, "REFERENCE", tmp_path)
    monkeypatch.setattr(show, "INSTALLED", True)
    said = describe("bottleneck-example20", None, tmp_path / "outputs").splitlines()
    assert said[0].startswith("bottleneck-example20, scale=quick: ")
    assert said[-2] == show.ELSEWHERE


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("fig44", None, "fig44 is no figure: did you mean 'fig4'"),
        ("rank-fig13", "paper", "scale=medium, scale=quick. To compute it: runner figure"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_type(name, scale, message, tmp_path):
    with pytest.raises(InputError, match=message):
        describe(name, scale, tmp_path)


def test_a_picture_of_ones_own_has_its_size_its_series_and_its_own_files(tmp_path, capsys):
    words = ["style=paper", "size=column", "series=[sgd,teacher_construction]"]
    assert main(["fig4", *words, "scale=quick", f"outputs={tmp_path}"]) == 0
    said = capsys.readouterr().out
    path = tmp_path / "figures-from-reference/quick/fig4-paper-column-sgd-teacher_construction.pdf"
    assert said.splitlines()[-1] == str(path) and path.read_bytes().startswith(b"%PDF")
    width, _ = Image.open(path.with_suffix(".png")).size
    assert width == 3.25 * 300 and path.with_suffix(".svg").exists()
    words = " ".join(said.split())
    assert "Drawn with series=sgd+teacher_construction." in words and "Size: 3.25 x " in words
    drawn = path.with_suffix(".svg").read_text()
    assert main(["fig4", "style=paper", "scale=quick", f"out={tmp_path / 'all.svg'}"]) == 0
    count = [text.count("<use ") for text in (drawn, (tmp_path / "all.svg").read_text())]
    assert count[0] < count[1], "fewer dots and markers"
    assert not path.with_name("fig4.png").exists()


def test_a_condition_chooses_the_rows_that_are_drawn():
    kept = KeptFigure.of(REFERENCE / "quick" / "fig4")
    tables = kept.tables()
    picture = kept.draw(tables, series="sgd", where="target_width=[5,10]", header=False)
    drawn = {tuple(line.get_xdata()) for line in picture.axes[0].lines if line.get_marker() == "o"}
    assert drawn - {()} == {(5, 10)}
    assert not picture.texts and picture.get_figheight() == pytest.approx(4.4)
    full = kept.part(tables, [], "")
    assert full is tables


@pytest.mark.parametrize("name", ["fig4", "rank-fig1", "constructions", "rank-laws", "conserved"])
@pytest.mark.parametrize("size", ["column", "5"])
def test_no_text_of_a_narrow_picture_is_cut(name, size):
    picture = KeptFigure.of(REFERENCE / "quick" / name).draw(style="paper", size=size)
    for text in [text for axes in picture.axes for text in axes.texts]:
        text.set_in_layout(True)
    box, (width, height) = picture.get_tightbbox(), picture.get_size_inches()
    assert box.x0 > 0 and box.y0 > 0 and box.x1 < width + 0.01 and box.y1 < height


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("style=papr", "style=papr is unknown: did you mean 'paper'"),
        ("size=huge", "size=huge is not column, page or inches"),
        ("series=[sgdd]", "series=sgdd is no series of this figure: did you mean 'sgd'"),
        ("series=[sgd,square]", "series=square is no series of this figure"),
        ("where=wdth>3", "there is no wdth: did you mean 'width'"),
        ("where=width <= 0", "no row meets this condition"),
        ("where=width", "a comparison is needed"),
        ("header=no", "header=no must be true or false"),
        ("size=column header=true", "only style=screen without a size has a header"),
        ("style=paper header=true", "only style=screen without a size has a header"),
        ("out=a.jpg", "must end in .png, .pdf or .svg"),
        ("sise=page", "did you mean 'size'"),
    ],
)
def test_a_wrong_word_for_a_picture_is_named_in_a_line(word, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        words = [word] if "where" in word else word.split()
        main(["fig4", *words, "scale=quick", f"outputs={tmp_path}"])
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.pdf"))


def test_a_part_that_cannot_be_drawn_is_named():
    with pytest.raises(InputError, match="rank-starts cannot be drawn with where init=pytorch"):
        KeptFigure.of(REFERENCE / "quick" / "rank-starts").draw(where="init=pytorch")


def test_every_figure_that_is_kept_is_listed():
    listed = {line.split()[0] for line in list_figures().splitlines()}
    assert listed - {"To"} == {name for name in figure_names() if kept_scales(name)}


def test_it_imports_no_torch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, tmp_path],
        env={"PYTHONPATH": str(REPOSITORY / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_a_figure_that_is_made_and_not_kept_is_drawn_otherwise_in_python(tmp_path):
    made = tmp_path / "figures" / "smoke" / "fig4.png"
    made.parent.mkdir(parents=True)
    with pytest.raises(InputError, match="To compute it: runner figure=fig4 scale=smoke"):
        describe("fig4", "smoke", tmp_path)
    made.write_bytes(b"")
    with pytest.raises(InputError, match=r'fig4.png. To draw it.*"fig4", scale="smoke"\).draw\('):
        describe("fig4", "smoke", tmp_path)


@pytest.mark.parametrize(
    ("figure", "series", "message"),
    [
        ("bottleneck-example20", ["0.8", "0.6"], r"type where='exponent=\[0.8,0.6\]'"),
        (
            "bottleneck-example20",
            ["0.8", "7"],
            r"COLUMN=\[1,2\]', with a column of depth, exp",
        ),
        ("bottleneck-example20", ["bold"], "with a column of depth, exponent"),
        ("fig4", ["5", "10"], r"type where='target_width=\[5,10\]'"),
        ("rank-fig2", ["batch_no_mean"], "is no series of this figure: choose from batch, none"),
    ],
)
def test_series_that_no_name_chooses_are_chosen_by_a_condition(figure, series, message):
    kept = KeptFigure.of(REFERENCE / "quick" / figure)
    with pytest.raises(InputError, match=message) as error:
        kept.part(kept.tables(), series)
    assert "seed=" not in str(error.value)


def of_part(name: str, series=(), where="") -> tuple[str, list[str]]:
    """The caption of a part of a figure in one line, and the texts in its picture."""
    kept = KeptFigure.of(REFERENCE / "quick" / name)
    tables = kept.tables()
    caption = kept.changed(series, where).caption(kept.part(tables, series, where))
    picture = kept.draw(tables, series=series, where=where)
    legends = [axes.get_legend() for axes in picture.axes if axes.get_legend()]
    texts = [text for part in (*picture.axes, *legends) for text in (*part.texts,)]
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    return " ".join(caption.split()), [*titles, *(text.get_text() for text in texts)]


def test_a_part_of_a_figure_has_a_caption_and_notes_about_this_part():
    """The whole figures say what the parts omit."""
    rates = KeptFigure.of(REFERENCE / "quick" / "conserved").tables()["metrics"]["learning_rate"]
    ends = {f"{rates.min():g}", f"{rates.max():g}"}
    whole = of_part("conserved")[1]
    texts = of_part("conserved", where=f"learning_rate <= {rates.min()}")[1]
    assert any("both rates" in text for text in whole) and ends < {*whole}
    assert not any("both rates" in text for text in texts)
    assert ends & {*texts} == {f"{rates.min():g}"}
    words, texts = of_part("conserved", ["linear"])
    assert "orange" not in words and "architecture: linear; depth: 6" in words
    assert not any("no rows" in text or "ReLU" in text or "two layers" in text for text in texts)
    assert "dense network" in of_part("fig4")[0]
    assert (
        "error of constructions and of SGD on γ and β against"
        in of_part("fig4", ["sgd", "teacher_construction"])[0]
    )
    assert "has 20 % nonzero weights, the lower row 5 %." in of_part("fig5")[0]
    assert "fraction of nonzero weights is 5 %." in of_part("fig5", where="sparsity=0.05")[0]
    assert "γ = 0.8 is bold" in of_part("bottleneck-example20")[0]
    assert "bold" not in of_part("bottleneck-example20", where="exponent=0.6")[0]
    assert "double" not in of_part("rank-fig2", where="dtype=float32")[0]
    assert (
        "Left out: kind of layer RMSNorm." in of_part("norm-layers", where="layer!='rms_norm'")[0]
    )
    assert "architecture: convolutions;" in of_part("what-grows", ["conv"])[0]
    part = of_part("rank-norms", where="normalization != 'batch_no_mean'")
    assert "without mean\nsubtraction" in of_part("rank-norms")[1]
    assert "without mean\nsubtraction" not in part[1] and "Left out" not in part[0]
