"""Page B defines the rank and r once each, and calls neither by the name of the other."""

import re

import pytest
from repository import REPOSITORY

from runner.results.claims import claims_of

RAISED = re.compile(r"\b(raises?|raised|raising) (the|its|their) rank\b|\brank is raised\b")
"""What pre-training is not said to do: it raises r, and at depth 32 lowers the rank."""

PAGE = (REPOSITORY / "docs" / "paper-b.md").read_text()
OF_R = {"raises-r", "few-steps-raise-r", "r-stays", "r-order-stays", "asymmetric-start-lowers-r"}


@pytest.mark.parametrize("word", ["rank", "r"])
def test_the_page_defines_the_word_once_and_before_its_first_table_of_numbers(word):
    """That is the first table of a section. The table of questions comes before all sections."""
    assert len(re.findall(rf"\*\*{word}\*\*", PAGE)) == 1
    assert PAGE.index(f"**{word}**") < PAGE.index("\n| ", PAGE.index("\n## "))


@pytest.mark.parametrize("figure", ["rank-fig4", "rank-fig6", "rank-fig12"])
def test_claims_about_r_name_r_and_claims_about_the_rank_do_not(figure):
    claims = {claim.name: claim for claim in claims_of(figure, "pretraining")}
    about = {name for name, claim in claims.items() if re.search(r"\br\b", claim.statement)}
    assert about == OF_R & {*claims}
    for name, claim in claims.items():
        if name in about:
            assert "lower bound of the rank" in claim.statement
        elif "rank" in name:
            assert re.search(r"\brank(s|\b)", claim.printed), name
            assert not re.search(r"\bmean r\b|\br of\b", claim.printed), name


def test_no_text_about_pretraining_says_that_it_raises_the_rank():
    texts = [REPOSITORY / "README.md", REPOSITORY / "conf" / "study" / "pretraining.yaml"]
    texts += (REPOSITORY / "docs").glob("*.md")
    texts += (REPOSITORY / "conf" / "figure").glob("rank-*.yaml")
    texts += (REPOSITORY / "outputs" / "reference").glob("*/rank-*/caption.txt")
    texts += (REPOSITORY / "src/runner/papers/batch_norm_rank/pretraining").rglob("*.py")
    assert len(texts) > 60
    said = [path.name for path in texts if RAISED.search(path.read_text())]
    assert not said
