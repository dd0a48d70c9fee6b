"""The choice of a learning rate."""

from math import inf, nan

import torch

from runner.training.rate_choice import NO_CHOICE, Choice, choose, score, selection_range

ON = "replicates 5, 6"


def of(rates, scores) -> Choice:
    return choose(rates, torch.tensor(scores), selection_range(5, 2))


def test_the_fastest_rate_is_that_whose_slowest_replicate_learns_fastest():
    """The third is faster in the mean, and one of its networks does not learn."""
    assert of([0.1, 0.3, 1.0], [[0.5, 0.6], [0.6, 0.55], [1.0, 0.3]]) == Choice(0.3, ON)


def test_a_rate_at_which_a_network_diverges_is_not_chosen_however_well_it_did_before():
    assert of([0.1, 0.3], [[0.1, 0.1], [1.0, nan]]) == Choice(0.1, ON)
    assert of([0.1, 0.3], [[nan, nan], [0.1, 0.0]]) == Choice(0.3, ON)
    assert of([0.1, 0.3], [[nan, 0.9], [0.0, 0.0]]) == Choice(0.3, ON)


def test_a_network_that_has_diverged_does_not_score_by_guessing_right():
    accuracy, loss = torch.tensor([0.5, 0.1, 0.1, 0.1]), torch.tensor([1.0, nan, inf, 2.3])
    assert score(accuracy, loss).isnan().tolist() == [False, True, True, False]
    assert (score(accuracy, loss)[[0, 3]] == accuracy[[0, 3]]).all()


def test_where_every_rate_diverges_the_smallest_is_taken_and_the_table_says_so():
    assert of([0.3, 0.1], [[nan, 0.5], [nan, nan]]) == Choice(0.1, f"{ON}: all rates diverged")


def test_of_equally_fast_rates_the_smallest_is_taken_in_whatever_order_they_stand():
    assert of([1.0, 0.3, 0.1], [[0.2], [0.5], [0.5]]) == Choice(0.1, ON)


def test_what_is_judged_has_no_part_in_the_choice():
    assert not set(selection_range(5, 2)) & set(range(5))


def test_one_rate_alone_is_no_choice():
    assert of([0.3], [[0.0, 0.0]]) == Choice(0.3, NO_CHOICE)
