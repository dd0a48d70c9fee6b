"""Trained deep linear networks, and what is said of their cost."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize

from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.linear import study
from runner.papers.bottleneck_structure.linear.config import Linear
from runner.papers.bottleneck_structure.linear.study import draw_target, product, trained
from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.results.claims import claims_of, judge


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


def tables(**changes) -> dict[str, pd.DataFrame]:
    """Ten replicates with singular values e and e^-1, at the cost of the theory, or other ones."""
    rows = []
    for replicate in range(10):
        for L in (4, 8, 16, 32):
            s = np.array([np.e, np.exp(-0.5)]) * (1 + 0.01 * replicate)
            logs = 2 * np.log(s)
            cost = L * (s ** (2 / L)).sum()
            norm = cost * changes.get("factor", 1.0) + changes.get("error", 0.0) / L
            rows.append(
                {
                    "depth": L, "replicate": replicate, "rank": 2, "parameter_norm": norm,
                    "representation_cost": cost, "first_correction": logs.sum(),
                    "second_correction": (logs**2).sum() / 2,
                    "theorem": "linear", "points": 1, "violations": int(norm < cost - 1e-9),
                    "lower": cost, "upper": norm, "tightness": cost / norm,
                }
            )  # fmt: skip
    return {"metrics": pd.DataFrame(rows), "theorems": pd.DataFrame(rows)}


def verdicts(tables: dict[str, pd.DataFrame]) -> pd.Series:
    claims = claims_of("bottleneck-linear", "linear")
    return judge("bottleneck-linear", claims, tables).set_index("claim")["verdict"]








def test_a_network_that_ends_at_zero_costs_what_zero_costs():
    found = tables()
    columns = ["parameter_norm", "representation_cost", "first_correction", "second_correction"]
    found["metrics"].loc[found["metrics"]["depth"] == 32, [*columns, "rank"]] = 0
    assert set(verdicts(found)) == {"holds"}
    found["metrics"].loc[found["metrics"]["depth"] == 32, "parameter_norm"] = 1e-6
    assert verdicts(found)["cost-is-attained"] == "fails"


def test_exponents_are_of_the_depths_of_one_rank():
    rows = with_remainders(tables()["metrics"])
    rows.loc[(rows["replicate"] == 0) & (rows["depth"] == 32), "rank"] = 1
    rows.loc[(rows["replicate"] == 1) & (rows["depth"] > 8), "rank"] = 1
    found = of_one_rank(rows, 3).groupby("replicate")
    assert list(found["depth"].agg(list)[0]) == [4, 8, 16]
    assert 1 not in found.groups and len(found) == 9


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
