"""What a rule is built from: no more of a file than its judge uses, and no less."""

import pytest

from runner.cli.catalogue import figure_names, figure_study
from runner.core.rooms import package_of
from runner.results.claims import claims_of
from runner.results.history import _now
from runner.results.rules import Rule, built_from, rule_of

ROOM = "runner.papers.room"
MODULES = {
    f"{ROOM}.study.claims": """
from runner.results.claims import claim
from runner.results.evidence import above, below
from runner.papers.room.shared import summary, unused
from runner.papers.room.theorems import register

BOUND = 1
UNUSED = 2

def helper(x):
    return summary(x) > BOUND

_both = partial(claim, name="both")

@_both(figure="a")
@claim(figure="b", statement="the same of another figure")
def judge(tables):
    return above(helper(tables))

@claim(figure="a")
def other(tables):
    return below(tables)

register(figure="a")
""",
    f"{ROOM}.shared": """
def summary(x):
    from runner.papers.room.theory import formula  # late: torch
    return formula(x)

def unused(x):
    return 7
""",
    f"{ROOM}.theory": "def formula(x):\n    return x\n",
    f"{ROOM}.theorems": """
LIST = ["one"]

def register(figure):
    return [figure, LIST, inequality]

def inequality(tables):
    return 0

def another():
    return 1
""",
    f"{ROOM}.listed.claims": """
from runner.results.evidence import above, below

BOUND, LOW = 1, 2
ONE, TWO = "one", "two"

def one(tables, bound):
    return above(tables, bound)

def two(tables):
    return below(tables)

CLAIMS = {
    "a": [
        Claim("one", ONE, partial(one, bound=BOUND), [s for s in "ab"]),
        Claim("two", TWO, two),
    ],
    "b": [Claim("one", "the same of another figure", partial(one, bound=LOW))],
}
""",
    "runner.results.claims": """
def judgement(x):
    return verdict(x)

def verdict(x):
    pass
""",
    "runner.results.evidence": "def above(x):\n    pass\n\ndef below(x):\n    pass\n",
}


def parts(judge=(f"{ROOM}.study.claims", "judge")):
    return built_from(Rule(f"{ROOM}.study.claims", judge, "a"), MODULES.get)


def text_of(found):
    return "\n".join(text for _, text in sorted(found))


def test_a_judge_is_built_from_what_it_names():
    text = text_of(parts())
    for there in ("def helper", "BOUND = 1", "_both = partial", "def summary", "def formula",
                  "def above", "def judgement", "def verdict"):  # fmt: skip
        assert there in text
    for absent in ("UNUSED", "def other", "register", "def unused", "def below", "another"):
        assert absent not in text
    assert "figure='a'" in text and "figure='b'" not in text


def test_the_rule_of_another_modules_judge_begins_where_it_is_registered():
    text = text_of(parts((f"{ROOM}.theorems", "inequality")))
    for there in ("register(figure='a')", "def register", "LIST = ", "def inequality"):
        assert there in text
    assert "def judge(" not in text and "def another" not in text


def test_a_listed_claim_is_built_from_its_own_entry():
    claims = f"{ROOM}.listed.claims"
    found = built_from(Rule(claims, (claims, "one"), "a", "a/one"), MODULES.get)
    text = text_of(found)
    for there in ("Claim('one', ONE,", "bound=BOUND", "ONE, TWO = ", "BOUND, LOW = ", "def one",
                  "def above", "def verdict"):  # fmt: skip
        assert there in text
    for absent in ("Claim('two'", "def two", "def below", "another figure"):
        assert absent not in text


@pytest.mark.parametrize("figure", figure_names())
def test_every_claim_is_found_in_the_text_of_its_file(figure):
    package = package_of(figure_study(figure))
    for claim in claims_of(figure, figure_study(figure)):
        rule = rule_of(f"{package}.claims", figure, claim)
        text = text_of(built_from(rule, _now))
        assert f"def {rule.judge[1]}(" in text, claim.name
        assert "def verdict(" in text and "ERROR = " in text


def test_a_theorem_belongs_to_no_other_claim_of_its_figure():
    package = package_of("bottleneck")
    modules = {}
    for claim in claims_of("bottleneck-fig1", "bottleneck"):
        found = built_from(rule_of(f"{package}.claims", "bottleneck-fig1", claim), _now)
        modules[claim.name] = {module for module, _ in found}
    theorems = "runner.papers.bottleneck.theorem_claims"
    assert theorems in modules["theorem-6"] and theorems not in modules["affine-norm"]
    assert "runner.papers.bottleneck.depth.tables" in modules["affine-norm"]
