"""The figures of paper C from the command line, tiny."""

import pandas as pd

from runner.papers.invariances.flow.items import ITEMS

TINY = ("scale=smoke", "device=cpu", "threads=1", "time=1.0")


def test_the_seven_items_hold_in_a_moment(command, tmp_path):
    """They need no long runs, but five replicates: fewer decide nothing."""
    done = command("figure=invariances-fig2", *TINY, "replicates=5")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("figures/smoke/invariances-fig2-*.claims.csv")
    verdicts = pd.read_csv(path).set_index("claim")["verdict"]
    assert (verdicts[[f"item-{each.number}" for each in ITEMS]] == "holds").all()
    drawn = pd.read_csv(str(path).replace(".claims.csv", ".csv"))
    assert set(drawn["data"]) == {"gaussian", "digits"}


def test_one_run_prints_its_drift_per_layer_and_rate(command):
    done = command("study=invariances", "architecture=residual_free", *TINY, "replicates=1")
    assert done.returncode == 0, done.stderr
    assert "drift at 0.02" in done.stdout and "within residual_free" in done.stdout
    assert "metrics.csv" in done.stdout and "lowrank.csv" in done.stdout
