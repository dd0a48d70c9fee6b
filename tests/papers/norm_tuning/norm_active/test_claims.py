"""What the claims of figure norm-active read from the table, and when they fail."""

import pandas as pd
import pytest
from in_memory import verdicts
from matplotlib.text import Text

from runner.papers.norm_tuning.norm_active.figures import draw_active
from runner.papers.norm_tuning.norm_active.tables import networks

FOUND = {
    # arm, m / d², optimizer, steps, chosen by: found of 48
    ("dense", 1, "adam", 2000, "dense"): 44,
    ("scales", 2, "adam", 2000, "scales"): 43,
    ("scales", 1, "adam", 2000, "scales"): 1,
    ("scales", 1, "adam", 20_000, "scales"): 20,
    ("scales", 2, "sgd", 20_000, "scales"): 30,
    ("scales", 1, "sgd", 20_000, "scales"): 0,
    ("rotated_weights", 1, "adam", 2000, "rotated_weights"): 40,
    ("rotated_scales", 1, "adam", 2000, "rotated_scales"): 0,
    ("singular_scales", 1, "adam", 2000, "singular_scales"): 30,
    ("from_active", 2, "adam", 2000, "from_active"): 30,
    ("from_zero", 2, "adam", 2000, "from_zero"): 0,
    ("from_zero", 2, "adam", 2000, "from_active"): 0,
}


def told(changes=None):
    """Return a table in which so many networks find their target. changes: other numbers."""
    rows = []
    for (arm, ratio, optimizer, steps, by), count in {**FOUND, **(changes or {})}.items():
        own = {"arm": arm, "target_width": 5, "width": 25 * ratio, "optimizer": optimizer}
        own |= {"steps": steps, "learning_rate": 0.5, "condition_number": 9.0, "units_on": 1.0}
        own |= {"shift_rate": 0.01 if arm.startswith("from") else 0.0, "run": "one"}
        for replicate in range(50):
            error = 1e-12 if replicate < count or replicate > 47 else 0.01
            judged = replicate < 48
            rows.append({**own, "replicate": replicate, "judged": judged, "relative_mse": error,
                         "chosen_by": by if judged else ""})  # fmt: skip
    return {"networks": pd.DataFrame(rows)}


def key(name):
    (found,) = [key for key in FOUND if name == " ".join(map(str, key[:3])) + f" by {key[4]}"]
    return found


ALL = ("found-at-twice", "not-found-at-square", "active-decides", "as-good-as-dense", "axes-decide")


@pytest.mark.parametrize(
    ("arm", "count", "failing"),
    [
        (None, 0, ()),
        ("scales 2 sgd by scales", 1, ("found-at-twice",)),
        ("scales 1 sgd by scales", 30, ("not-found-at-square",)),
        ("from_active 2 adam by from_active", 2, ("active-decides",)),
        ("from_zero 2 adam by from_active", 20, ("active-decides",)),
        ("from_zero 2 adam by from_zero", 20, ("active-decides",)),
        ("scales 2 adam by scales", 10, ("found-at-twice", "as-good-as-dense")),
        ("rotated_weights 1 adam by rotated_weights", 5, ("axes-decide",)),
        ("rotated_scales 1 adam by rotated_scales", 40, ("axes-decide",)),
        ("singular_scales 1 adam by singular_scales", 2, ("axes-decide",)),
    ],
)
def test_each_claim_fails_where_one_arm_fails(arm, count, failing):
    changes = {key(arm): count} if arm else {}
    expected = {name: "fails" if name in failing else "holds" for name in ALL}
    assert verdicts("norm-active", told(changes)) == expected


def test_long_trainings_and_choosing_networks_are_told_apart():
    rows = networks(told())
    assert len(rows) == 48 * len(FOUND) and rows["judged"].all()
    assert rows.query("arm == 'scales long'")["found"].sum() == 20
    assert rows.query("arm == 'scales by sgd' and ratio == 2")["found"].sum() == 30


def test_the_picture_names_and_counts_what_it_draws():
    picture, drawn = draw_active(told())
    texts = {text.get_text() for text in picture.findobj(Text)}
    assert {
        "dense network",
        "γ,\n2 d² units",
        "γ in random axes,\nκ of K",
        "43 of 48",
        "20 of 48",
    } <= texts
    assert len(drawn) == len(FOUND)
