"""How the claims of many figures count: a statement on the same numbers counts once."""

import pandas as pd

from runner.results.claims import distinct


def once(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the claims of several figures without those that another has stated of the same
    numbers.

    Its runs may have other names under another figure, which trains more methods beside those of
    the claim.
    """
    return distinct(judged).drop_duplicates(["statement", "data", "measured"])
