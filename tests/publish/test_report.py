"""The report page: what it says, where its links lead, and that a real browser filters it."""

import json
import re
import shutil
import subprocess
from urllib.parse import unquote

import pandas as pd
import pytest
from repository import REPOSITORY

from runner.cli.catalogue import figure_names, figure_study, natural_order
from runner.core.errors import InputError
from runner.core.papers import PAPERS
from runner.core.rooms import room_of
from runner.publish import entries, report
from runner.publish.entries import collect
from runner.publish.reference import picture
from runner.publish.report import duration, page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


RUN = "law=a+b,width=5%-01234567"
"""The name of a run, with characters that an address must escape."""


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """One figure made: a claim of each verdict, text that HTML must escape. No reference."""
    monkeypatch.setattr(report, "REFERENCE", tmp_path / "reference")
    folder = tmp_path / "figures" / "quick"
    folder.mkdir(parents=True)
    claims = [
        {
            "figure": "fig4",
            "claim": f"claim-{verdict}",
            "statement": f"a <b>statement</b> that {verdict} & more",
            "source": "paper A, Appendix E",
            "verdict": verdict,
            "measured": "x < 3",
            "expected": "x < 4",
            "kind": "ours" if verdict == "fails" else "paper",
            "data": "synthetic",
            "runs": f"{RUN} gone-89abcdef",
        }
        for verdict in ("holds", "fails", "undecided")
    ]
    pd.DataFrame(claims).to_csv(folder / "fig4.claims.csv", index=False)
    run = {
        "run": "bn_only (defaults)",
        "seconds": 170.0,
        "commit": "0123456789abcdef",
        "dirty": True,
        "device_name": "x86_64",
        "threads": 2,
        "versions": {"torch": "2.13.0"},
    }
    about = {"figure": "fig4", "command": "make fig4 SCALE=quick", "seconds": 170.0, "runs": [run]}
    (folder / "fig4.provenance.json").write_text(json.dumps(about))
    pixel = (
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
    (folder / "fig4.png").write_bytes(bytes.fromhex(pixel))
    (tmp_path / "runs" / "bn_only" / RUN).mkdir(parents=True)
    return tmp_path


SMALL = "bottleneck-example20"
"""Of the figures of the reference the soonest drawn."""


@pytest.fixture
def reference(outputs, monkeypatch):
    """A reference that holds one small figure, and figure 4 as the outputs have it.

    Its pictures are not drawn.
    """
    monkeypatch.setattr(entries, "picture", lambda folder, figures: b"picture")
    folder = outputs / "reference" / "quick"
    kept = REPOSITORY / "outputs" / "reference" / "quick"
    shutil.copytree(kept / SMALL, folder / SMALL)
    shutil.copytree(
        kept / "fig4", folder / "fig4", ignore=shutil.ignore_patterns("*.xz", "claims*")
    )
    shutil.copy(outputs / "figures" / "quick" / "fig4.claims.csv", folder / "fig4" / "claims.csv")
    return outputs / "reference"


def shown(outputs) -> str:
    """The page of these outputs."""
    return page(collect(outputs, None, report.REFERENCE))


def part(html: str, name: str) -> str:
    """What the page says of a figure, its picture left out, in one line."""
    article = re.search(rf'<article id="{name}".*?</article>', html, re.S)[0]
    return " ".join(re.sub(r'src="data:[^"]*"', "", article).split())


def test_the_page_shows_every_figure_and_escapes_text(outputs):
    html = shown(outputs)
    for name in figure_names():
        assert f'id="{name}"' in html
        assert name == "fig4" or f"make {name}" in html
    assert "<b>statement</b>" not in html and "&lt;b&gt;statement" in html
    assert "3 min of computing" in html
    assert "0123456789+" in html and "torch 2.13.0" in html
    for verdict, own in {"holds": 1, "fails": 0, "undecided": 1}.items():
        assert re.search(rf'<div class="{verdict}"><b>{own}</b>', html), "the paper's own"
    ours = re.search(r"<td>ours</td>\s*<td>0</td><td>1</td><td>0</td>", html)
    assert ours, "counted apart"
    for paper in PAPERS.values():
        assert paper.title in html


def test_the_page_needs_nothing_from_elsewhere_and_its_links_lead_to_files(outputs, reference):
    """Tables, run folders with odd names, and places on the page."""
    html = shown(outputs)
    assert not re.findall(r"""src=["'](?!data:)""", html)
    assert "url(" not in html and "@import" not in html and "fetch(" not in html
    places = {*re.findall(r'id="([^"]*)"', html)}
    links = {*re.findall(r'href="([^"]*)"', html)}
    (outputs / "report").mkdir(exist_ok=True)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in places, link
        else:
            assert (outputs / "report" / unquote(link)).exists(), link
    tables = ("fig4.claims.csv", "bn_only/law%3Da%2Bb%2Cwidth%3D5%25-01234567/", "/metrics.csv")
    for end in (*tables, f"quick/{SMALL}/claims.csv", "quick/fig4/claims.csv"):
        assert any(link.endswith(end) for link in links), end
    assert "<li>gone-89abcdef</li>" in html


def test_what_one_has_not_made_is_shown_from_the_reference_and_marked(outputs, reference):
    html = shown(outputs)
    kept = part(html, SMALL)
    assert "Kept reference</b>, computed at commit" in kept and "not your own run" in kept
    assert f"make {SMALL} SCALE=quick" in kept
    for row in pd.read_csv(reference / "quick" / SMALL / "claims.csv").itertuples():
        assert row.verdict in kept and row.claim
    assert "Kept reference" not in part(html, "fig4")
    assert "<b>1</b> of" in html and "<b>1</b> from the reference" in html
    assert "not in the reference" in part(html, "fig5")


def test_a_picture_of_the_reference_is_drawn_once_and_again_when_it_changes(
    outputs, reference, monkeypatch
):
    monkeypatch.setattr(entries, "picture", picture)
    collect(outputs, None, reference)
    drawn = outputs / "figures-from-reference" / "quick" / f"{SMALL}.png"
    first = drawn.stat().st_mtime_ns
    (entry,) = [each for each in collect(outputs, None, reference) if each.name == SMALL]
    assert drawn.stat().st_mtime_ns == first and entry.results[0].picture
    table = reference / "quick" / SMALL / "metrics.csv"
    table.write_text(table.read_text().replace("0.", "0.1"))
    collect(outputs, None, reference)
    assert drawn.stat().st_mtime_ns > first


def test_an_old_reference_is_shown_as_far_as_it_goes(outputs, reference, monkeypatch, capsys):
    """Tables that the drawing of today does not take, claims without columns of today."""
    monkeypatch.setattr(entries, "picture", picture)
    folder = reference / "quick" / SMALL
    rows = pd.read_csv(folder / "metrics.csv")
    rows.drop(columns="epsilon").drop(columns="parameter_norm").to_csv(folder / "metrics.csv")
    claims = pd.read_csv(folder / "claims.csv", dtype=str)
    claims[["claim", "statement", "verdict", "measured"]].to_csv(folder / "claims.csv")
    kept = part(shown(outputs), SMALL)
    assert "the code of today cannot draw these tables" in kept
    assert claims["measured"][0] in kept
    (folder / "provenance.json").write_text("{}")
    assert "Not run yet, and not in the reference" in part(shown(outputs), SMALL)
    assert f"quick/{SMALL}: left out, it cannot be read" in capsys.readouterr().err


def test_kept_runs_of_other_code_are_said(outputs, reference):
    path = reference / "quick" / SMALL / "provenance.json"
    about = json.loads(path.read_text())
    about["runs"][0]["code"] = "0000000000000000"
    path.write_text(json.dumps(about))
    assert "1 of 1 runs were computed by other code than today&#39;s" in part(shown(outputs), SMALL)


def test_each_claim_stands_beside_that_of_the_reference(outputs, reference):
    path = reference / "quick" / "fig4" / "claims.csv"
    claims = pd.read_csv(path, dtype=str)
    claims.loc[1, ["verdict", "measured"]] = "holds", "x < 2"
    claims.drop(index=2).to_csv(path, index=False)
    same, other, absent = part(shown(outputs), "fig4").split('<dt class="kept">')[1:]
    assert "same verdict" in same and "same numbers" in same
    assert "another verdict" in other and "x &lt; 2" in other and 'holds">holds' in other
    assert "has no such claim" in absent


def test_a_statement_on_the_same_numbers_counts_once(outputs, reference):
    """Under another figure its runs train more methods, and have other names."""
    counts = r'<div class="(\w+)"><b>(\d+)</b>'
    before = re.findall(counts, shown(outputs))
    other = reference / "quick" / "bottleneck-fig1"
    shutil.copytree(reference / "quick" / SMALL, other)
    claims = pd.read_csv(other / "claims.csv").assign(runs="more methods")
    claims.to_csv(other / "claims.csv", index=False)
    assert re.findall(counts, shown(outputs)) == before
    claims.assign(measured="other numbers").to_csv(other / "claims.csv", index=False)
    assert re.findall(counts, shown(outputs)) != before


def test_scales_stand_side_by_side_and_smoke_comes_last(outputs, reference):
    """Of figure 4 there is smoke, quick, and the reference at scale paper."""
    shutil.copytree(outputs / "figures" / "quick", outputs / "figures" / "smoke")
    shutil.copytree(reference / "quick" / "fig4", reference / "paper" / "fig4")
    (fig4,) = [each for each in collect(outputs, None, reference) if each.name == "fig4"]
    found = [(result.scale, result.source) for result in fig4.results]
    assert found == [("quick", "own"), ("paper", "reference"), ("smoke", "own")]
    html = part(page([fig4]), "fig4")
    heads = re.findall(r'<th><a href="#fig4.(\w+).(\w+)">', html)
    assert heads == [("smoke", "own"), ("quick", "own"), ("paper", "reference")]
    assert html.count('data-column="') == 3 * 3 and html.count('<details class="other">') == 2
    (alone,) = [each for each in collect(outputs, "smoke", reference) if each.name == "fig4"]
    assert [result.scale for result in alone.results] == ["smoke"]


def test_a_caption_stands_below_its_picture(outputs, reference):
    (outputs / "figures" / "quick" / "fig4.caption.txt").write_text("Error & width.\n")
    (reference / "quick" / SMALL / "caption.txt").write_text("Norm and depth.\n")
    html = shown(outputs)
    assert "<figcaption>Error &amp; width.</figcaption>" in part(html, "fig4")
    assert "<figcaption>Norm and depth.</figcaption>" in part(html, SMALL)


def test_the_command_writes_the_page_and_explains_wrong_input(outputs):
    assert report.main([f"outputs={outputs}"]) == 0
    assert (outputs / "report" / "index.html").stat().st_size > 5000
    with pytest.raises(InputError, match="did you mean 'outputs'"):
        report.main(["output=x"])
    (outputs / "figures" / "quick" / "fig4.png").unlink()
    with pytest.raises(InputError, match="fig4 cannot be read"):
        report.main([f"outputs={outputs}"])


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"runs": [{}], "seconds": 1}', None])
def test_a_damaged_provenance_is_named(outputs, content):
    path = outputs / "figures" / "quick" / "fig4.provenance.json"
    path.unlink()
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(InputError, match="fig4 cannot be read") as caught:
        report.main([f"outputs={outputs}"])
    assert "\n" not in str(caught.value)


def test_numbers_in_names_count_as_numbers():
    assert sorted(["fig11", "fig2", "fig3b", "fig3a"], key=natural_order) == [
        "fig2",
        "fig3a",
        "fig3b",
        "fig11",
    ]


def test_times_as_people_say_them():
    assert [duration(s) for s in (5, 150, 9000)] == ["5 s", "2 min", "2.5 h"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install Debian's chromium")
def test_a_browser_shows_the_page_and_filters_it(outputs, reference, tmp_path):
    """The page's own script is driven by a second one that chooses and reports."""
    shutil.copytree(outputs / "figures" / "quick", outputs / "figures" / "smoke")
    claims = pd.read_csv(reference / "quick" / SMALL / "claims.csv").assign(data="digits")
    claims.to_csv(reference / "quick" / SMALL / "claims.csv", index=False)
    html = shown(outputs)
    driver = """<script>
    const count = (selector) =>
      [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length;
    const rows = () => count(".all tbody tr");
    const choose = (name, value) => {
      const select = document.querySelector(`select[name=${name}]`);
      select.value = value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
    };
    const reset = () => document.querySelector("nav button").click();
    const result = { all: rows(), folded: count(".other .result") };
    choose("scale", "smoke"); result.smoke = rows(); result.unfolded = count(".other .result");
    choose("verdict", "fails"); result.fails = rows(); result.claims = count(".claims > li");
    choose("paper", "D"); result.none = rows(); result.sections = count("section");
    reset(); choose("paper", "A"); result.paper = rows();
    reset(); choose("source", "reference"); result.kept = count("article");
    reset(); choose("kind", "ours"); result.ours = rows();
    reset(); choose("dataset", "digits"); result.digits = rows();
    reset(); choose("verdict", "missing"); result.missing = rows();
    reset(); result.again = rows();
    result.overflow = document.documentElement.scrollWidth > window.innerWidth;
    document.body.innerHTML = "<pre id=result>" + JSON.stringify(result) + "</pre>";
    </script></body>"""
    path = tmp_path / "driven.html"
    path.write_text(html.replace("</body>", driver))
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [CHROMIUM, *FLAGS, profile, "--window-size=500,900", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    result = json.loads(re.search(r'<pre id="result">(.*?)</pre>', done.stdout)[1])
    figures = figure_names()
    kept = len(claims)
    missing = len(figures) - 2
    of_paper_a = [name for name in figures if room_of(figure_study(name)) == "norm_tuning"]
    assert result == {
        "all": missing + 3 + 3 + kept,
        "folded": 0,
        "smoke": 3,
        "unfolded": 1,
        "fails": 1,
        "claims": 1,
        "none": 0,
        "sections": 0,
        "paper": len(of_paper_a) - 1 + 3 + 3,
        "kept": 1,
        "ours": 2,
        "digits": kept,
        "missing": missing,
        "again": missing + 3 + 3 + kept,
        "overflow": False,
    }


def test_without_its_script_the_page_shows_everything(outputs, reference):
    html = shown(outputs)
    assert "<nav hidden>" in html and html.count("hidden>") == 1
