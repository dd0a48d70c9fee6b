"""Study `invariances` from the command line, tiny."""

TINY = ("scale=smoke", "device=cpu", "threads=1", "time=1.0")


def test_one_run_prints_its_drift_per_layer_and_rate(command):
    done = command("study=invariances", "architecture=residual_free", *TINY, "replicates=1")
    assert done.returncode == 0, done.stderr
    assert "drift at 0.02" in done.stdout and "within residual_free" in done.stdout
    assert "metrics.csv" in done.stdout and "lowrank.csv" in done.stdout
