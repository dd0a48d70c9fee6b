"""The figures of paper C from the command line, tiny."""

import pandas as pd
import pytest

TINY = ("scale=smoke", "device=cpu", "threads=1", "time=1.0")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_figure_and_its_claims(command, tmp_path, number):
    name = f"invariances-fig{number}"
    done = command(f"figure={name}", *TINY, "replicates=5")  # fewer decide nothing
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "figures" / "smoke"
    (claims_path,) = folder.glob(f"{name}-*.claims.csv")  # with time=1.0
    drawn = pd.read_csv(str(claims_path).replace(".claims.csv", ".csv"))
    assert set(drawn["data"]) == {"gaussian", "digits"}
    claims = pd.read_csv(claims_path).set_index("claim")["verdict"]
    assert set(claims) <= {"holds", "fails", "undecided"}
    if number == 2:  # the seven items need no long runs
        assert (claims[[f"item-{n}" for n in range(1, 8)]] == "holds").all()


def test_one_run_prints_its_drift_per_layer_and_rate(command):
    done = command("study=invariances", "architecture=residual_free", *TINY, "replicates=1")
    assert done.returncode == 0, done.stderr
    assert "drift at 0.02" in done.stdout and "within residual_free" in done.stdout
    assert "metrics.csv" in done.stdout and "lowrank.csv" in done.stdout
