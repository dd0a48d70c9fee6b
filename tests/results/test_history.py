"""Whether a rule stood before its numbers, in a repository of its own."""

import json
import subprocess

import pandas as pd
import pytest

from runner.results import history
from runner.results.claims import claims_of
from runner.results.history import last_change, rule_commit, standing
from runner.results.rules import Rule
from runner.runs import provenance

CACHED = (
    last_change,
    history._digest_at,
    history._text_at,
    history._text_now,
    history._is_ancestor,
    history.first_kept,
)
CLAIMS = "runner.papers.room.study.claims"

TEXT = """
BOUND = 1

@claim(figure="a")
def judge(tables):
    return tables > BOUND

@claim(figure="a")
def other(tables):
    return tables < 3
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(**texts):
        for name, text in texts.items():
            (tmp_path / {"claims": "claims.py", "size": "size.yaml"}[name]).write_text(text)
        git("add", "-A")
        git("commit", "-qm", "one", "--allow-empty")
        clear()
        return git("rev-parse", "HEAD")

    def clear():
        for cached in CACHED:
            cached.cache_clear()

    (tmp_path / "src" / "runner").mkdir(parents=True)
    git("init", "-q")
    monkeypatch.setattr(history, "REPOSITORY", tmp_path)
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    files = {CLAIMS: "claims.py"}
    monkeypatch.setattr(history, "_file", lambda module: files.get(module, "absent.py"))
    clear()
    yield commit
    clear()


def changed(scale="quick", judge="judge"):
    return last_change(Rule(CLAIMS, (CLAIMS, judge), "a"), ("size.yaml",), scale)


def bounded(bound):
    return TEXT.replace("BOUND = 1", f"BOUND = {bound}")


def ran(commit, dirty=False):
    return [{"commit": commit, "dirty": dirty}]


def test_a_rule_is_fixed_before_what_ran_at_or_after_its_commit(repository):
    early = repository(claims=TEXT, size="replicates: 5\n")
    now = repository(claims=bounded(2))
    late = repository()
    assert changed() == now
    assert standing(now, ran(early)) == "after"
    assert standing(now, ran(now)) == "fixed before"
    assert standing(now, ran(late)) == "fixed before"
    assert standing(now, ran(early) + ran(late)) == "after"
    assert standing(now, ran(late, dirty=True)) == "after"


def test_a_rule_before_runs_that_repeat_older_ones_says_so(repository):
    early = repository(claims=TEXT, size="replicates: 5\n")
    now = repository(claims=bounded(2))
    late = repository()
    assert standing(now, ran(late), first=ran(now)) == "fixed before"
    assert standing(now, ran(late), first=ran(early)) == "before a repeat"
    assert standing(now, ran(late), first=ran(late, dirty=True)) == "before a repeat"
    assert standing(now, ran(early), first=ran(early)) == "after"


def test_the_first_run_of_a_name_is_the_one_kept_first(repository, tmp_path):
    def keep(**commits):
        runs = [{"run": name, "commit": each, "dirty": False} for name, each in commits.items()]
        path.write_text(json.dumps({"runs": runs}))

    path = tmp_path / "outputs" / "reference" / "quick" / "fig4" / "provenance.json"
    path.parent.mkdir(parents=True)
    keep(one="a")
    repository(claims=TEXT, size="replicates: 5\n")
    keep(one="b", two="b")
    repository()
    path.unlink()
    repository()
    keep(one="c", two="c", three="c")  # not committed yet
    found = {name: run["commit"] for name, run in history.first_kept("fig4", "quick").items()}
    assert found == {"one": "a", "two": "b"}


def test_a_comment_changes_no_rule_a_preset_does(repository):
    first = repository(claims=TEXT, size="replicates: 5\n")
    repository(claims=f'"""Rules."""\n{TEXT}# why\n', size="# why\nreplicates: 5\n")
    assert changed() == first
    later = repository(size="replicates: 4\n")
    assert changed() == later


def test_what_another_claim_is_judged_by_changes_no_rule(repository):
    first = repository(claims=TEXT, size="replicates: 5\n")
    later = repository(claims=TEXT.replace("tables < 3", "tables < 4"))
    assert changed() == first
    assert changed(judge="other") == later


def test_of_a_figures_grids_that_of_the_scale_counts(repository):
    def preset(smoke, paper):
        grids = {"smoke": [{"depth": smoke}], "quick": "${.paper}", "paper": [{"depth": paper}]}
        return json.dumps({"hydra": {"sweeper": {"grids": grids}}})

    first = repository(claims=TEXT, size=preset(2, 8))
    smaller = repository(size=preset(1, 8))
    assert changed("quick") == first
    assert changed("smoke") == smaller
    larger = repository(size=preset(1, 16))
    assert changed("quick") == larger


def test_a_rule_that_is_not_committed_comes_after(repository, tmp_path):
    repository(claims=TEXT, size="replicates: 5\n")
    (tmp_path / "claims.py").write_text(bounded(3))
    assert changed() == history.NOT_COMMITTED
    assert standing(history.NOT_COMMITTED, ran("0" * 40)) == "after"


def test_without_git_nothing_is_known(monkeypatch):
    monkeypatch.setattr(history, "git", lambda *arguments: None)
    last_change.cache_clear()
    claim = claims_of("fig4", "bn_only")[0]
    assert rule_commit("bn_only", "fig4", "quick", claim) is None
    assert standing(None, ran("0" * 40)) == "unknown"
    last_change.cache_clear()


def test_order_in_words_counts():
    order = pd.DataFrame({"rule": ["after", "fixed before", "fixed before"]})
    assert history.in_words(order) == "2 fixed before, 1 after"
