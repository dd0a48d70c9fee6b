"""The report page: what it says, and that a real browser shows and filters it."""

import json
import re
import shutil
import subprocess

import pandas as pd
import pytest

from runner.cli.catalogue import figure_names, figure_study, natural_order
from runner.core.errors import InputError
from runner.core.papers import PAPERS
from runner.core.studies import room_of
from runner.publish import report
from runner.publish.report import collect, duration, page

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


@pytest.fixture
def outputs(tmp_path):
    """One figure made, with a claim of each verdict and text that HTML must escape."""
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
    return tmp_path


def test_the_page_shows_every_figure_and_escapes_text(outputs):
    html = page(collect(outputs, None))
    for name in figure_names():
        assert f'id="{name}"' in html
        assert name == "fig4" or f"make {name}" in html
    assert "<b>statement</b>" not in html and "&lt;b&gt;statement" in html
    assert "3 min of computing" in html
    assert "0123456789+" in html and "torch 2.13.0" in html
    for verdict in ("holds", "fails", "undecided"):
        assert re.search(rf'<div class="{verdict}"><b>1</b>', html)
    for paper in PAPERS.values():
        assert paper.title in html or not any(e.paper == paper for e in collect(outputs, None))


def test_the_page_needs_nothing_from_elsewhere(outputs):
    html = page(collect(outputs, None))
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", html)
    assert "url(" not in html and "@import" not in html and "fetch(" not in html


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
def test_a_browser_shows_the_page_and_filters_it(outputs, tmp_path):
    """The page's own script is driven by a second one that presses the buttons and reports."""
    html = page(collect(outputs, None))
    driver = """<script>
    const shown = (selector) =>
      [...document.querySelectorAll(selector)].filter((e) => !e.hidden).length;
    const press = (kind, value) =>
      document.querySelector(`[data-filter=${kind}] button[value="${value}"]`).click();
    const result = { all: shown("tbody tr") };
    press("verdict", "fails"); result.fails = shown("tbody tr"); result.figures = shown("article");
    press("paper", "D"); result.none = shown("tbody tr");
    press("verdict", ""); press("paper", "A"); result.paper = shown("tbody tr");
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
    assert result["all"] == len(figures) - 1 + 3
    assert result["fails"] == 1 and result["figures"] == 1
    assert result["none"] == 0
    of_paper_a = [name for name in figures if room_of(figure_study(name)) == "norm_tuning"]
    assert result["paper"] == len(of_paper_a) - 1 + 3
    assert result["overflow"] is False
