"""Whether a rule stood before its numbers, in a repository of its own."""

import json
import subprocess

import pytest

from runner.results import history
from runner.runs import provenance

FILES = ("claims.py", "size.yaml")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(**texts):
        for name, text in texts.items():
            (tmp_path / FILES[name == "size"]).write_text(text)
        git("add", "-A")
        git("commit", "-qm", "one", "--allow-empty")
        return git("rev-parse", "HEAD")

    (tmp_path / "src" / "runner").mkdir(parents=True)
    git("init", "-q")
    monkeypatch.setattr(history, "REPOSITORY", tmp_path)
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    monkeypatch.setattr(history, "rule_files", lambda *names: FILES)
    for cached in (history.rule_commit, history._digest_at, history._is_ancestor):
        cached.cache_clear()
    yield commit
    for cached in (history.rule_commit, history._digest_at, history._is_ancestor):
        cached.cache_clear()


def ran(commit, dirty=False):
    return [{"commit": commit, "dirty": dirty}]


def test_a_rule_is_fixed_before_what_ran_at_or_after_its_commit(repository):
    early = repository(claims="bound = 1\n", size="replicates: 5\n")
    rule = repository(claims="bound = 2\n")
    late = repository()
    assert history.rule_commit("study", "fig", "quick") == rule
    assert history.standing(rule, ran(early)) == "after"
    assert history.standing(rule, ran(rule)) == "fixed before"
    assert history.standing(rule, ran(late)) == "fixed before"
    assert history.standing(rule, ran(early) + ran(late)) == "after"
    assert history.standing(rule, ran(late, dirty=True)) == "after"


def test_a_comment_changes_no_rule_a_preset_does(repository):
    rule = repository(claims="bound = 1\n", size="replicates: 5\n")
    repository(claims='"""The bound."""\nbound = 1  # why\n', size="# why\nreplicates: 5\n")
    assert history.rule_commit("study", "fig", "quick") == rule
    history.rule_commit.cache_clear()
    later = repository(size="replicates: 4\n")
    assert history.rule_commit("study", "fig", "quick") == later


def test_of_a_figures_grids_that_of_the_scale_counts(repository):
    def preset(smoke, paper):
        grids = {"smoke": [{"depth": smoke}], "quick": "${.paper}", "paper": [{"depth": paper}]}
        return json.dumps({"hydra": {"sweeper": {"grids": grids}}})

    rule = repository(claims="bound = 1\n", size=preset(2, 8))
    smaller = repository(size=preset(1, 8))
    assert history.rule_commit("study", "fig", "quick") == rule
    assert history.rule_commit("study", "fig", "smoke") == smaller
    history.rule_commit.cache_clear()
    larger = repository(size=preset(1, 16))
    assert history.rule_commit("study", "fig", "quick") == larger


def test_a_rule_that_is_not_committed_comes_after(repository, tmp_path):
    repository(claims="bound = 1\n", size="replicates: 5\n")
    (tmp_path / "claims.py").write_text("bound = 3\n")
    rule = history.rule_commit("study", "fig", "quick")
    assert rule == history.NOT_COMMITTED
    assert history.standing(rule, ran("0" * 40)) == "after"


def test_without_git_nothing_is_known(monkeypatch):
    monkeypatch.setattr(history, "git", lambda *arguments: None)
    history.rule_commit.cache_clear()
    assert history.rule_commit("bn_only", "fig4", "quick") is None
    assert history.standing(None, ran("0" * 40)) == "unknown"
    history.rule_commit.cache_clear()


def test_the_rule_of_a_figure_is_its_judges_and_presets():
    from runner.results.history import rule_files

    files = rule_files("bn_only", "fig4", "quick")
    assert "conf/size/bn_only/quick.yaml" in files and "conf/figure/fig4.yaml" in files
    assert "src/runner/papers/norm_tuning/bn_only/claims.py" in files
    assert "src/runner/results/evidence.py" in files
