"""Whether a rule stood before its numbers, in a repository of its own."""

import json
import subprocess

import pandas as pd
import pytest

from runner.results import history
from runner.results.claims import claims_of
from runner.results.history import Rule, part_of_rule, rule_commit, rule_of, standing
from runner.runs import provenance

CACHED = (rule_commit, history._digest_at, history._text_at, history._is_ancestor)

CLAIMS = """
from runner.results.claims import claim
from runner.results.evidence import above, below
from runner.papers.room import shared
from runner.papers.room.theorems import register

BOUND = 1
UNUSED = 2

def helper(x):
    return x > BOUND

_both = partial(claim, name="both")

@_both(figure="a")
@claim(figure="b", statement="the same of another figure")
def judge(tables):
    return above(helper(tables))

@claim(figure="a")
def other(tables):
    return below(shared(tables))

register(figure="a")
"""


def rule(scale="quick", judge="judge"):
    return Rule("claims.py", ("runner.room.claims", judge, "a"), ("size.yaml",), scale)


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
        return git("rev-parse", "HEAD")

    (tmp_path / "src" / "runner").mkdir(parents=True)
    git("init", "-q")
    monkeypatch.setattr(history, "REPOSITORY", tmp_path)
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    for cached in CACHED:
        cached.cache_clear()
    yield commit
    for cached in CACHED:
        cached.cache_clear()


def judging(bound):
    return CLAIMS.replace("BOUND = 1", f"BOUND = {bound}")


def ran(commit, dirty=False):
    return [{"commit": commit, "dirty": dirty}]


def test_a_rule_is_fixed_before_what_ran_at_or_after_its_commit(repository):
    early = repository(claims=judging(1), size="replicates: 5\n")
    now = repository(claims=judging(2))
    late = repository()
    assert rule_commit(rule()) == now
    assert standing(now, ran(early)) == "after"
    assert standing(now, ran(now)) == "fixed before"
    assert standing(now, ran(late)) == "fixed before"
    assert standing(now, ran(early) + ran(late)) == "after"
    assert standing(now, ran(late, dirty=True)) == "after"


def test_a_comment_changes_no_rule_a_preset_does(repository):
    first = repository(claims=CLAIMS, size="replicates: 5\n")
    repository(claims=f'"""Rules."""\n{CLAIMS}# why\n', size="# why\nreplicates: 5\n")
    assert rule_commit(rule()) == first
    rule_commit.cache_clear()
    later = repository(size="replicates: 4\n")
    assert rule_commit(rule()) == later


def test_what_another_claim_is_judged_by_changes_no_rule(repository):
    first = repository(claims=CLAIMS, size="replicates: 5\n")
    later = repository(claims=CLAIMS.replace("below(shared(tables))", "below(tables)"))
    assert rule_commit(rule()) == first
    assert rule_commit(rule(judge="other")) == later


def test_of_a_figures_grids_that_of_the_scale_counts(repository):
    def preset(smoke, paper):
        grids = {"smoke": [{"depth": smoke}], "quick": "${.paper}", "paper": [{"depth": paper}]}
        return json.dumps({"hydra": {"sweeper": {"grids": grids}}})

    first = repository(claims=CLAIMS, size=preset(2, 8))
    smaller = repository(size=preset(1, 8))
    assert rule_commit(rule("quick")) == first
    assert rule_commit(rule("smoke")) == smaller
    rule_commit.cache_clear()
    larger = repository(size=preset(1, 16))
    assert rule_commit(rule("quick")) == larger


def test_a_rule_that_is_not_committed_comes_after(repository, tmp_path):
    repository(claims=CLAIMS, size="replicates: 5\n")
    (tmp_path / "claims.py").write_text(judging(3))
    assert rule_commit(rule()) == history.NOT_COMMITTED
    assert standing(history.NOT_COMMITTED, ran("0" * 40)) == "after"


def test_without_git_nothing_is_known(monkeypatch):
    monkeypatch.setattr(history, "git", lambda *arguments: None)
    rule_commit.cache_clear()
    assert rule_commit(rule_of("bn_only", "fig4", "quick", of("fig4", "bn_only"))) is None
    assert standing(None, ran("0" * 40)) == "unknown"
    rule_commit.cache_clear()


def of(figure, study, name=None):
    """A claim of a figure: that of the name, or the first."""
    return next(each for each in claims_of(figure, study) if name in (None, each.name))


def test_a_judge_is_built_from_what_it_names():
    text, imported = part_of_rule(CLAIMS, ("runner.room.claims", "judge", "a"))
    assert "def helper" in text and "BOUND = 1" in text and "_both = partial" in text
    assert "'a'" in text and "'b'" not in text
    assert "UNUSED" not in text and "def other" not in text and "register" not in text
    assert {"runner.results.claims", "runner.results.evidence"} <= imported
    assert not any("room" in each for each in imported)


def test_a_judge_of_another_module_is_what_registers_it():
    text, imported = part_of_rule(CLAIMS, ("runner.papers.room.theorems", "inequality", "a"))
    assert text.strip() == "register(figure='a')"
    assert imported == {"runner.papers.room.theorems", "runner.papers.room.theorems.register"}


def test_the_rule_of_a_claim_is_its_judge_with_what_it_uses_and_the_presets():
    claim = of("bottleneck-fig1", "bottleneck", "affine-norm")
    rule = rule_of("bottleneck", "bottleneck-fig1", "quick", claim)
    assert rule.claims == "src/runner/papers/bottleneck/depth/claims.py"
    assert {
        "conf/size/bottleneck/quick.yaml",
        "conf/figure/bottleneck-fig1.yaml",
        "src/runner/papers/bottleneck/depth/tables.py",
        "src/runner/results/evidence.py",
    } <= set(rule.files)
    theorems = "src/runner/papers/bottleneck/theorem_claims.py"
    assert theorems not in rule.files
    theorem = of("bottleneck-fig1", "bottleneck", "theorem-6")
    assert theorems in rule_of("bottleneck", "bottleneck-fig1", "quick", theorem).files


def test_every_claim_is_found_in_the_text_of_its_file():
    from runner.cli.catalogue import figure_names, figure_study
    from runner.runs.provenance import REPOSITORY

    for figure in figure_names():
        study = figure_study(figure)
        for claim in claims_of(figure, study):
            rule = rule_of(study, figure, "quick", claim)
            text, _ = part_of_rule((REPOSITORY / rule.claims).read_text(), rule.judge)
            assert text, f"{figure}: {claim.name}"


def test_order_in_words_counts():
    order = pd.DataFrame({"rule": ["after", "fixed before", "fixed before"]})
    assert history.in_words(order) == "2 fixed before, 1 after"
