"""The gallery: what its pages say, where their links lead, and how a real browser shows them."""

import json
import re
import shutil
from importlib.resources import files
from urllib.parse import unquote

import pandas as pd
import pytest
from browser import CHROMIUM, Browser
from PIL import Image
from repository import REPOSITORY

from runner.commands import report as command
from runner.commands.gallery_data import claims_of, collect
from runner.commands.kept import KeptFigure, drawn_from
from runner.commands.report import VERDICTS, by_paper, papers, pretty
from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.core.papers import papers as all_papers
from runner.results.claims import COLUMNS
from runner.results.finishing import place
from runner.runs.provenance import REFERENCE

RUN = "law=a+b,width=5%-01234567"
"""The name of a run, with characters that an address must escape."""
SMALL = "bottleneck-example20"
MIB = 2**20


def make_own(outputs):
    """One figure made: a claim of each verdict, text that HTML must escape."""
    folder = outputs / "figures" / "quick"
    folder.mkdir(parents=True)
    verdicts = ["holds", "fails", "undecided"]
    claims = dict.fromkeys(COLUMNS, "") | {
        "figure": "fig4",
        "claim": [f"claim-{verdict}" for verdict in verdicts],
        "statement": [f"a <b>statement</b> that {verdict} & more" for verdict in verdicts],
        "source": "paper A, Appendix E",
        "verdict": verdicts,
        "measured": "x < 3",
        "rule": "x: below 4",
        "note": "in all",
        "kind": ["paper", "ours", "paper"],
        "data": "synthetic",
        "runs": f"{RUN} gone-89abcdef",
    }
    pd.DataFrame(claims).to_csv(folder / "fig4.claims.csv", index=False)
    run = {"run": "bn_only (defaults)", "seconds": 170.0, "commit": "0123456789abcdef"}
    run |= {"dirty": True, "device_name": "x86_64", "threads": 2, "versions": {"torch": "2.13.0"}}
    about = {"figure": "fig4", "command": "make fig4 SCALE=quick", "seconds": 170.0, "runs": [run]}
    (folder / "fig4.provenance.json").write_text(json.dumps(about))
    (folder / "fig4.caption.txt").write_text("Not in the picture: a & b.\n")
    words = {"what": "Paper A, figure 4  ·  ours", "finding": "SGD & the rest are < 3"}
    (folder / "parts").mkdir()
    place(folder / "fig4", "header.json").write_text(json.dumps(words))
    for end in ("png", "body.png"):
        Image.new("RGB", (840, 440)).save(place(folder / "fig4", end))
    (outputs / "runs" / "bn_only" / RUN).mkdir(parents=True)


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """One figure made, and no reference."""
    monkeypatch.setattr(command, "REFERENCE", tmp_path / "reference")
    make_own(tmp_path)
    return tmp_path


@pytest.fixture
def reference(outputs, monkeypatch):
    """A reference that holds one small figure, and figure 4 as the outputs have it.

    Its pictures are not drawn.
    """
    drawn = outputs / "figures" / "quick"
    monkeypatch.setattr(KeptFigure, "picture", lambda figure, end: place(drawn / "fig4", end))
    monkeypatch.setattr(KeptFigure, "path", lambda figure, end: place(drawn / "fig4", end))
    folder = outputs / "reference" / "quick"
    kept = REFERENCE / "quick"
    shutil.copytree(kept / SMALL, folder / SMALL)
    ignored = shutil.ignore_patterns("*.xz", "claims*")
    shutil.copytree(kept / "fig4", folder / "fig4", ignore=ignored)
    shutil.copy(outputs / "figures" / "quick" / "fig4.claims.csv", folder / "fig4" / "claims.csv")
    return outputs / "reference"


def written(outputs) -> dict[str, str]:
    """The text of every page of these outputs, by name, without line breaks."""
    assert command.main([f"outputs={outputs}"]) == 0
    pages = (outputs / "report").glob("*.html")
    return {path.stem: " ".join(path.read_text().split()) for path in pages}


def test_the_pages_show_every_figure_and_escape_text(outputs):
    pages = written(outputs)
    assert set(pages) == {"index", "claims", *figure_names()}
    for name in figure_names():
        assert f'href="{name}.html"' in pages["index"]
        command = f"make {name}</code>"
        assert (command in pages[name] and command in pages["index"]) == (name != "fig4")
    for page in (pages["fig4"], pages["claims"]):
        assert "<b>statement</b>" not in page and "A &lt;b&gt;statement" in page
    for page in (pages["fig4"], pages["index"]):
        assert "SGD &amp; the rest are &lt; 3" in page
    assert "1 run, 3 min of computing" in pages["fig4"] and "0123456789+" in pages["fig4"]
    assert "torch 2.13.0" in pages["fig4"] and "Rule: X &lt; 4" not in pages["fig4"]
    assert "Rule: x: below 4" in pages["fig4"]
    for page in (pages["fig4"], pages["claims"]):
        assert page.count("Neither the statement nor its opposite passes the test") == 1
    assert "statements <a" in pages["index"] and "✓ 1 hold</a>" in pages["index"]
    assert "✗ 0 fail</a>" in pages["index"] and "? 1 are undecided</a>" in pages["index"]
    assert all(paper.title in pages["index"] for paper in all_papers().values())
    assert re.search("<figcaption>[^/]*/b> Not in the picture: a &amp; b.<", pages["fig4"])


def test_what_one_has_not_made_is_shown_from_the_reference_and_marked(outputs, reference):
    """With its caption, and with a word on runs of other code."""
    (reference / "quick" / SMALL / "caption.txt").write_text("Norm and depth.\n")
    path = reference / "quick" / SMALL / "provenance.json"
    about = json.loads(path.read_text())
    about["runs"][0]["code"] = "0000000000000000"
    path.write_text(json.dumps(about))
    pages = written(outputs)
    assert re.search("<figcaption>.*Norm and depth.</figcaption>", pages[SMALL])
    assert "1 of 1 runs were computed by other code than today&#39;s" in pages[SMALL]
    assert "<b>Reference, scale quick.</b>" in pages[SMALL] and "<b>Yours" not in pages[SMALL]
    assert f"make {SMALL} SCALE=quick" in pages[SMALL] and "Commits: " in pages[SMALL]
    for row in pd.read_csv(reference / "quick" / SMALL / "claims.csv").itertuples():
        assert f'<tr id="{row.claim}">' in pages[SMALL]
    assert "<b>Yours, scale quick.</b>" in pages["fig4"]
    assert "<b>1 of 2 figures are yours</b>" in pages["index"]
    assert "not in the reference" in pages["fig5"]


def test_an_old_reference_is_shown_as_far_as_it_goes(outputs, reference, monkeypatch, capsys):
    """Tables that the drawing of today does not take, and a damaged file."""

    def fail(figure, end):
        raise KeyError("epsilon")

    monkeypatch.setattr(KeptFigure, "picture", fail)
    page = written(outputs)[SMALL]
    assert "the code of today cannot draw these tables (KeyError" in page
    (reference / "quick" / SMALL / "provenance.json").write_text("{}")
    assert "Not computed yet, and not in the reference" in written(outputs)[SMALL]
    said = capsys.readouterr().err
    assert re.search(f"left out: .*quick/{SMALL}/provenance.json is damaged", said)


def test_ones_own_claim_stands_beside_that_of_the_reference(outputs, reference):
    path = reference / "quick" / "fig4" / "claims.csv"
    claims = pd.read_csv(path, dtype=str)
    claims.loc[1, ["verdict", "measured"]] = "holds", "x < 2"
    claims.drop(index=2).to_csv(path, index=False)
    rows = re.findall(r"<tr id=.*?</tr>", written(outputs)["fig4"])
    same, absent, other = rows  # those of the paper first
    assert same.count("holds</a>") == 2 and "differs" not in same and "differs" in other
    assert other.index("x &lt; 3") < other.index("x &lt; 2"), "one's own before"
    assert "not judged" in absent and "differs" not in absent


def test_scales_stand_side_by_side_and_smoke_speaks_last(outputs, reference):
    """Of figure 4 there is smoke, quick twice, and the reference at scale paper."""
    shutil.copytree(outputs / "figures" / "quick", outputs / "figures" / "smoke")
    shutil.copytree(reference / "quick" / "fig4", reference / "paper" / "fig4")
    (fig4,) = [each for each in collect(outputs, None, reference) if each.name == "fig4"]
    found = [f"{each.scale} {each.whose}" for each in fig4.results]
    assert found == ["quick own", "paper reference", "quick reference", "smoke own"]
    page = written(outputs)["fig4"]
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page)
    assert heads[:3] == ["statement", "smoke, yours", "quick, yours"]
    assert heads[3:] == ["quick, reference", "paper, reference"]
    assert page.count("<summary>The same at scale") == 3
    (alone,) = [each for each in collect(outputs, "smoke", reference) if each.name == "fig4"]
    assert [each.scale for each in alone.results] == ["smoke"]


def test_figures_of_version_2_0_are_shown(outputs):
    """It wrote all files beside the picture."""
    folder = outputs / "figures" / "quick"
    for path in list((folder / "parts").iterdir()):
        path.rename(folder / path.name)
    assert "SGD &amp; the rest are &lt; 3" in written(outputs)["fig4"]
    assert (outputs / "report" / "pictures" / "fig4.quick.own.png").exists()


@pytest.mark.parametrize(
    ("end", "content"),
    [
        ("header.json", "{}"),
        ("body.png", None),
        ("provenance.json", "{"),
        ("provenance.json", '{"runs": [{}], "seconds": 1}'),
    ],
)
def test_what_is_damaged_is_named(outputs, end, content):
    path = place(outputs / "figures" / "quick" / "fig4", end)
    path.unlink()
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(InputError) as caught:
        command.main([f"outputs={outputs}"])
    named, told = str(caught.value).splitlines()
    assert named.startswith(f"{path} is ") and told.startswith("runner figures fig4 scale=quick")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("||theta||^2 <= k L", "‖θ‖<sup>2</sup> ≤ k L"),
        ("s_{k+1} < 1.2e-05", "s<sub>k+1</sub> &lt; 1.2·10<sup>−5</sup>"),
        ("sqrt(d) and sqrt((1 - alpha) d)", "√d and √((1 - α) d)"),
        ("epsilon = L^(-gamma)", "ε = L<sup>−γ</sup>"),
        ("R^(0)(f), d^1.5, knn_r2", "R<sup>(0)</sup>(f), d<sup>1.5</sup>, knn_r2"),
    ],
)
def test_texts_are_written_as_mathematics(text, html):
    assert pretty(text) == html


# Everything that is kept, as a browser shows it.


def stand_in(outputs):
    """A drawing for every kept figure but one: as if it were drawn already."""
    kept = {path.parent for path in REFERENCE.glob("*/*/claims.csv")}
    for folder in sorted(kept - {REFERENCE / "quick" / SMALL}):
        stem = outputs / "figures-from-reference" / folder.parent.name / folder.name
        (stem.parent / "parts").mkdir(parents=True, exist_ok=True)
        # Any picture will do; a link to a missing file would be written through.
        picture = REPOSITORY / "docs" / "figures" / "fig4.png"
        for end in ("png", "body.png"):
            place(stem, end).symlink_to(picture)
        words = {"what": f"Paper, {folder.name}", "finding": f"{folder.name}: " + 16 * "words, "}
        place(stem, "header.json").write_text(json.dumps(words))
        place(stem, "drawn-from").write_text(drawn_from(folder))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The gallery of the whole reference and of a figure of one's own, with a variant."""
    outputs = tmp_path_factory.mktemp("outputs")
    make_own(outputs)
    stand_in(outputs)
    folder = outputs / "figures" / "quick"
    for path in sorted(folder.rglob("fig4.*")):
        shutil.copy(path, path.with_name(path.name.replace("fig4", "fig4-0123abcd")))
    about = json.loads((folder / "fig4.provenance.json").read_text()) | {"overrides": ["seed=1"]}
    (folder / "fig4-0123abcd.provenance.json").write_text(json.dumps(about))
    assert command.main([f"outputs={outputs}"]) == 0
    return outputs / "report"


def parts(path) -> tuple[list[str], set[str]]:
    """Where a page leads to and what it loads, and the places in it."""
    html = path.read_text()
    return re.findall(r'(?:href|src)="([^"]*)"', html), {*re.findall(r'id="([^"]*)"', html)}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(report):
    """Tables, run folders with odd names, places on pages."""
    places = {path.name: parts(path)[1] for path in report.glob("*.html")}
    followed = set()
    for page in sorted(report.glob("*.html")):
        html = page.read_text()
        assert not re.search(r"url\(|@import|fetch\(|src=\"(http|/)", html), page
        for link in parts(page)[0]:
            if re.match("https://arxiv.org/abs/|data:,", link):
                continue
            file, _, mark = link.partition("#")
            assert (page.parent / unquote(file)).exists(), (page.name, link)
            if mark and "=" not in mark:
                assert mark in places[file or page.name], (page.name, link)
            followed.add(link)
    for end in ("fig4.claims.csv", "bn_only/law%3Da%2Bb%2Cwidth%3D5%25-01234567/", "metrics.csv"):
        assert any(link.endswith(end) for link in followed), end
    assert "<li>gone-89abcdef</li>" in (report / "fig4.html").read_text()


def test_missing_pictures_are_drawn_and_no_page_loads_more_than_two_megabytes(report):
    """Pictures that are there are left alone."""
    drawn = report.parent / "figures-from-reference" / "quick"
    assert not place(drawn / SMALL, "body.png").is_symlink() and (drawn / "fig4.png").is_symlink()
    body = place(drawn / SMALL, "body.png").read_bytes()
    assert (report / "pictures" / f"{SMALL}.quick.reference.png").read_bytes() == body
    assert len(body) > 10_000
    for page in sorted(report.glob("*.html")):
        loaded = {page.name, "style.css", *re.findall(r'src="([^"]*)"', page.read_text())}
        assert sum((report / name).stat().st_size for name in loaded) < 2 * MIB, page.name


def test_the_index_says_of_every_paper_what_was_found_and_of_smoke_nothing():
    """Its sentences rest on claims of figures; those on the reference are all said."""
    kept = collect(REFERENCE, None, REFERENCE, draws=False)
    claims = claims_of(kept)
    main = claims[claims["is_main"]]
    names = {*(main["figure"] + "/" + main["claim"])}
    said = {each.paper.letter: each.found for each in by_paper(kept, claims)}
    for letter, about in papers().items():
        for one in about["found"]:
            needed = {claim for verdict in VERDICTS for claim in one.get(verdict, [])}
            assert needed and needed <= names
        assert said[letter] == " ".join(one["says"] for one in about["found"])
    assert set(papers()) == {paper.letter for paper in all_papers().values()}
    smoke = claims.assign(scale="smoke")
    assert {each.found for each in by_paper(kept, smoke)} == {""}


def test_a_variant_follows_its_figure_and_counts_nowhere(report):
    html = (report / "index.html").read_text()
    assert html.index('href="fig4.html"') < html.index('href="fig4-0123abcd.html"')
    assert html.index('href="fig4-0123abcd.html"') < html.index('href="fig5.html"')
    assert "with seed=1" in html
    (figures,) = re.findall(r"<b>1 of (\d+) figures are yours</b>", " ".join(html.split()))
    assert int(figures) == len({path.parent.name for path in REFERENCE.glob("*/*/claims.csv")})
    page = (report / "fig4-0123abcd.html").read_text()
    assert "A variant, with seed=1. It counts in no total." in page


PAGES = ("index.html", "fig4.html", "claims.html#verdict=undecided")


def address(report, page):
    file, hash_sign, filters = page.partition("#")
    return (report / file).as_uri() + hash_sign + filters


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install Debian's chromium")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


ROWS = "[...document.querySelectorAll('.all tr[data-verdict]')].filter(e => e.checkVisibility())"
CHOOSE = """(() => {
  const form = document.getElementById("filters");
  for (const [name, value] of Object.entries(%s)) form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
  return %s.map((row) => ({...row.dataset}));
})()"""


def test_the_table_of_claims_is_filtered_and_whole_without_scripts(report, browser):
    plain = address(report, "claims.html")
    browser.open(plain, script=False)
    tables = [pd.read_csv(path) for path in REFERENCE.glob("*/*/claims.csv")]
    assert browser.run(f"{ROWS}.length") == sum(map(len, tables)) + 2 * 3, "one's own, a variant"
    assert not browser.run("document.getElementById('filters').checkVisibility()")
    browser.open(f"{plain}#verdict=fails&kind=paper")
    main = browser.run(f"{ROWS}.map((row) => ({{...row.dataset}}))")
    assert main and {(row["verdict"], row["kind"]) for row in main} == {("fails", "paper")}
    assert all("main" in row for row in main)
    for chosen, key in (({"paper": "D"}, "paper"), ({"scale": "paper"}, "scale")):
        rows = browser.run(CHOOSE % (json.dumps({"verdict": "", "kind": ""} | chosen), ROWS))
        assert {row[key] for row in rows} == {chosen[key]} and len(rows) > 30
    chosen = {"paper": "", "scale": "", "source": "own", "words": "statement UNDECIDED"}
    assert len(browser.run(CHOOSE % (json.dumps(chosen), ROWS))) == 2
    browser.run("document.querySelector('button').click()")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    assert browser.run("location.hash") == ""
    first = browser.run(f"{ROWS}.length")
    browser.open(plain)
    assert browser.run(f"{ROWS}.length") == first > 100


LIGHT = """(() => {
  const light = (color) => color.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 765;
  const style = getComputedStyle(document.body);
  return [style.backgroundColor, style.color].map(light);
})()"""


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_readable_everywhere(report, browser, page):
    """On a phone, with and without scripts; light in print; and axe has nothing to complain of,
    in the dark as in the light."""
    place = address(report, page)
    browser.open(place, 400, script=False)
    assert browser.run("document.documentElement.scrollWidth") <= 400
    browser.open(place, 760, media="print", prefers_color_scheme="dark")
    ground, text = browser.run(LIGHT)
    assert ground > 0.9 and text < 0.2
    assert browser.run("document.documentElement.scrollWidth") <= 760
    assert not browser.run("document.querySelector('nav').checkVisibility()")
    axe = pytest.importorskip("axe_core_python")
    script = (files(axe) / "axe.min.js").read_text() + ";0"
    for scheme, width in (("light", 1280), ("dark", 400)):
        browser.open(place, width, prefers_color_scheme=scheme)
        assert browser.run("document.documentElement.scrollWidth") <= width
        ground, text = browser.run(LIGHT)
        assert (ground < text) == (scheme == "dark")
        browser.run(script)
        found = browser.run(
            "axe.run().then(({violations}) => violations.map(({id, nodes}) => id + nodes[0].html))"
        )
        assert found == []
