"""Trained deep linear networks, and what is said of their cost."""

import pandas as pd
import pytest
import torch
from in_memory import kept_tables, verdicts
from scipy.optimize import minimize

from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.linear import study
from runner.papers.bottleneck_structure.linear.config import Linear
from runner.papers.bottleneck_structure.linear.study import draw_target, product, trained
from runner.papers.bottleneck_structure.linear.tables import of_one_rank


def test_the_trained_matrix_is_near_its_target_and_costs_what_it_must():
    config = Linear(depths=[4], width=3, rank=2)
    T = draw_target(config, 0)
    assert int(torch.linalg.matrix_rank(T)) == 2
    weights = trained(config, 4, T, 0)
    A = product(weights)
    torch.testing.assert_close(A, torch.linalg.multi_dot(list(weights.flip(0))))
    assert float((A - T).square().sum()) < 1e-4
    cost = float(theory.representation_cost(A, 4))
    assert float(weights.square().sum()) == pytest.approx(cost, rel=1e-4)


def test_a_network_that_ends_at_zero_costs_what_zero_costs():
    tables = kept_tables("bottleneck-linear")
    metrics = tables["metrics"]
    deepest = metrics["depth"] == metrics["depth"].max()
    columns = ["parameter_norm", "representation_cost", "first_correction", "second_correction"]
    metrics.loc[deepest, [*columns, "rank"]] = 0
    assert set(verdicts("bottleneck-linear", tables).values()) == {"holds"}
    metrics.loc[deepest, "parameter_norm"] = 1e-6
    assert verdicts("bottleneck-linear", tables)["cost-is-attained"] == "fails"


def test_exponents_are_of_the_depths_of_one_rank():
    rows = pd.DataFrame({"depth": [4, 8, 16, 32]}).merge(
        pd.DataFrame({"replicate": range(3)}), how="cross"
    )
    rows["rank"] = 2
    rows.loc[(rows["replicate"] == 0) & (rows["depth"] == 32), "rank"] = 1
    rows.loc[(rows["replicate"] == 1) & (rows["depth"] > 8), "rank"] = 1
    found = of_one_rank(rows, 3).groupby("replicate")["depth"].agg(list)
    assert found.to_dict() == {0: [4, 8, 16], 2: [4, 8, 16, 32]}


def test_training_goes_on_where_a_line_search_gave_up(monkeypatch):
    """A first call that returns its start is not the end; the iterations are counted in all."""
    calls = []

    def lazy(loss, flat, *arguments, options, **more):
        calls.append(options["maxiter"])
        return minimize(loss, flat, *arguments, options=options | {"maxiter": 40}, **more)

    monkeypatch.setattr(study, "minimize", lazy)
    config = Linear(depths=[4], width=3, rank=2, ridges=[1e-3], iterations=400)
    trained(config, 4, draw_target(config, 0), 0)
    assert len(calls) > 2 and calls[0] == 400 and calls == sorted(calls, reverse=True)
