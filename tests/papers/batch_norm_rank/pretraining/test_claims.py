"""What claims of study `pretraining` select from the tables, and how rates are chosen."""

from math import inf, nan

import pandas as pd
import pytest
from in_memory import judged, kept_tables, verdicts

from runner.papers.batch_norm_rank.pretraining.claims import AS_LONG
from runner.papers.batch_norm_rank.pretraining.figures import depths
from runner.papers.batch_norm_rank.pretraining.figures.parts import by_epoch
from runner.papers.batch_norm_rank.pretraining.rows import LayerRank
from runner.papers.batch_norm_rank.pretraining.study import raising_most
from runner.papers.batch_norm_rank.pretraining.tables import (
    ENOUGH,
    LONG,
    at_chosen_rates,
    last_epochs,
)
from runner.results.claims import claims_of

NETWORKS = {  # network: (training loss at depth 8, at depth 32, r before, r after)
    "vanilla": (0.5, 2.3, 1.1, 1.1),
    "pretrained 5": (0.4, 2.2, 1.3, 1.3),
    "pretrained 75": (0.3, 0.9, 2.2, 2.0),
    "batch_norm": (0.2, 1.2, 9.0, 7.0),
    "batch_norm_asymmetric": (0.9, 2.25, 1.2, 1.2),
    "scale_matched 75": (0.4, 2.0, 1.1, 1.2),
}
FIGURE_4 = {"vanilla", "pretrained 75", "batch_norm"}
CONTROLS = {"scale_matched 75"}


def told(figure, changes=None, M=1000):
    """A figure's table of training that tells these numbers; M: of figures 4 and 11."""
    rows = []
    depths = (8, 16, 32) if figure in ("rank-fig4", "rank-fig11") else (32,)
    protocols = ("authors", "text") if figure == "rank-pretraining" else ("authors",)
    for protocol in protocols:
        for name, numbers in (NETWORKS | (changes or {})).items():
            if len(depths) > 1 and name not in FIGURE_4:
                continue
            if figure == "rank-fig6" and name in CONTROLS:
                continue
            method, _, steps = name.partition(" ")
            steps = M if steps and len(depths) > 1 else steps
            shallow, deep, before, after = numbers
            for depth in depths:
                for replicate in range(8):
                    loss = shallow + (deep - shallow) * (depth - 8) / 24 + 1e-4 * replicate
                    for epoch, r in enumerate((before, (before + after) / 2, after)):
                        rows.append({
                            "run": f"{protocol} {depth}", "protocol": protocol, "depth": depth,
                            "method": method, "pretraining_steps": int(steps or 0),
                            "replicate": replicate, "judged": True, "learning_rate": 0.01,
                            "epoch": 25 * epoch, "train_loss": loss,
                            "train_accuracy": 1 - loss / 2.4,
                            "test_loss": loss, "test_accuracy": 1 - loss / 2.4,
                            "rank_bound": r, "mean_rank_bound": r, "rank": r,
                        })  # fmt: skip
    return {"training": pd.DataFrame(rows)}


def test_figure_12_judges_what_figures_4_and_11_do():
    names = {
        figure: [claim.name for claim in claims_of(figure, "pretraining")]
        for figure in ("rank-fig4", "rank-fig11", "rank-fig12")
    }
    assert sorted(names["rank-fig12"]) == sorted(names["rank-fig4"] + names["rank-fig11"])


@pytest.mark.parametrize(
    ("columns", "prefix"), [(["rank"], "rank"), (["rank_bound", "mean_rank_bound"], "r")]
)
@pytest.mark.parametrize(
    ("figure", "network", "value", "failing"),
    [
        ("rank-fig6", "batch_norm", 4.4, "stays"),
        ("rank-fig6", "batch_norm", 2.0, "order-stays"),
        ("rank-fig4", "pretrained", 9.0, "order-stays"),
    ],
)
def test_rank_and_r_are_judged_apart_at_their_worst_epoch(
    figure, network, value, failing, columns, prefix
):
    tables = told(figure)
    rows = tables["training"]
    middle = (rows["method"] == network) & (rows["epoch"] == 25)
    rows.loc[middle, columns] = value
    found = verdicts(figure, tables, f"rank-{failing}", f"r-{failing}")
    assert found.pop(f"{prefix}-{failing}") == "fails" and set(found.values()) == {"holds"}


def test_a_larger_r_is_no_larger_rank():
    tables = told("rank-fig4")
    rows = tables["training"]
    rows.loc[rows["method"] == "pretrained", "rank"] = 1.0
    found = verdicts("rank-fig4", tables, "raises-rank", "raises-r")
    assert found == {"raises-rank": "fails", "raises-r": "holds"}


def test_a_claim_on_all_initializations_says_what_figure_6_alone_would():
    tables = told("rank-pretraining", changes={"scale_matched 75": (0.4, 0.5, 1.0, 1.2)})
    found = judged("rank-pretraining", tables).loc["r-and-speed"]
    assert found["verdict"] == "fails" and found["estimate"] < 0.2
    assert "of figure 6 alone the correlation is 0.90;" in found["note"]


def test_a_diverged_network_is_the_slowest_and_counts():
    """`DataFrame.corr(method="spearman")` would exclude it, and leave the correlation high."""
    tables = told("rank-pretraining")
    before = judged("rank-pretraining", tables).loc["r-and-speed", "estimate"]
    rows = tables["training"]
    rows.loc[rows["method"] == "batch_norm", "train_loss"] = nan
    after = judged("rank-pretraining", tables).loc["r-and-speed", "estimate"]
    assert before > 0.6 and after < before - 0.3


@pytest.mark.parametrize("figure", ["rank-fig4", "rank-fig11"])
def test_a_shorter_pre_training_than_the_authors_decides_nothing_of_speed(figure):
    found = verdicts(figure, told(figure, M=999))
    before = ("raises-rank", "raises-r", "rank-order-stays", "r-order-stays")
    of_rank = {found.pop(name, "holds") for name in before}
    assert of_rank == {"holds"} and set(found.values()) == {"undecided"}


def test_the_headline_says_that_a_shorter_training_is_not_judged():
    """Without this headline, it would say that the numbers leave the question undecided."""
    assert f"M >= {ENOUGH} and epochs >= {LONG}" == AS_LONG
    said = depths.say_unjudged(kept_tables("rank-fig4"), "train_loss")
    assert said.endswith("25 epochs are too few to judge")
    long_enough = told("rank-fig4")
    assert long_enough["training"]["epoch"].max() == LONG
    assert not depths.say_unjudged(long_enough, "train_loss")


def test_the_numbers_at_the_lines_are_those_of_the_headline():
    """Means over the epochs come first, medians over networks second; the order matters here."""
    tables = kept_tables("rank-fig12", "paper")
    said = depths.say_against_batch_norm(tables, "test_loss", depths.HIGHER)
    (drawing,) = [drawing for drawing in depths.FIGURES if drawing.figure == "rank-fig12"]
    picture, _ = drawing.draw(tables)
    (names,) = [axes.texts for axes in picture.axes if "test loss" in axes.texts[1].get_text()]
    means = dict(text.get_text().split(":\n") for text in names[2:5])
    numbers = [means[name].partition("mean ")[2] for name in ("pre-trained", "batch norm")]
    assert len(set(numbers)) == 2 and "{} against {}".format(*numbers) in said


def test_a_network_that_diverges_is_behind():
    tables = told("rank-fig4")
    rows = tables["training"]
    lost = (rows["method"] == "pretrained") & (rows["depth"] == 32) & (rows["epoch"] == 50)
    rows.loc[lost, "train_loss"] = nan
    assert verdicts("rank-fig4", tables)["faster-than-batch-norm"] == "fails"
    drawn = by_epoch(tables).query("method == 'pretrained' and depth == 32").set_index("epoch")
    assert drawn.loc[50, "train_loss"] == inf and drawn.loc[25, "train_loss_high"] < 1


def tried(losses):
    """Two rates: the last epoch of two selection replicates and one that is judged."""
    rows = [
        {"run": "a", "method": "vanilla", "pretraining_steps": 0, "replicate": r, "judged": r < 1,
         "learning_rate": rate, "epoch": epoch, "train_loss": loss / epoch, "train_accuracy": 0.5}
        for rate, of_rate in losses.items() for r, loss in enumerate(of_rate) for epoch in (1, 2)
    ]  # fmt: skip
    return {"training": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("losses", "chosen"),
    [
        ({0.1: (9.0, 1.0, 2.0), 0.2: (1.0, 1.0, 3.0)}, 0.1),  # the judged one has no part in it
        ({0.1: (1.0, 2.0, 2.0), 0.2: (9.0, 1.9, 1.9)}, 0.2),
        ({0.1: (1.0, 2.0, 2.0), 0.2: (9.0, nan, 0.1)}, 0.1),
        ({0.1: (1.0, nan, 2.0), 0.2: (9.0, nan, 0.1)}, 0.1),  # of what is lost the smallest
    ],
)
def test_a_rate_is_chosen_by_the_last_loss_of_the_worst_selection_replicate(losses, chosen):
    found = at_chosen_rates(tried(losses))
    assert set(found["learning_rate"]) == {chosen} and set(found["replicate"]) == {0}
    assert len(found) == 2 and set(last_epochs(tried(losses))["epoch"]) == {2}


def test_a_run_with_one_rate_stands_beside_one_where_a_rate_is_chosen():
    chosen = tried({0.1: (9.0, 1.0, 2.0), 0.2: (1.0, 1.0, 3.0)})["training"]
    alone = tried({0.3: (1.0,)})["training"].assign(run="b")
    found = at_chosen_rates({"training": pd.concat([chosen, alone])})
    assert set(zip(found["run"], found["learning_rate"], strict=True)) == {("a", 0.1), ("b", 0.3)}


def test_the_step_is_that_of_the_largest_r_in_the_worst_replicate():
    def row(step, r):
        return LayerRank("pretrained", 75, step, 2, False, 6, 1.0, 1.0, r, 1.0)

    assert raising_most([row(0.1, 3.0), row(0.1, 9.0), row(0.2, 4.0), row(0.2, 5.0)]) == 0.2
    assert raising_most([row(0.1, nan), row(0.2, 1.0)]) == 0.2
