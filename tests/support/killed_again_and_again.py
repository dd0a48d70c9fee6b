"""Kill a run at random moments and continue with the same command until it is complete.

    python killed_again_and_again.py <study> <outputs> <kills>

Prints a JSON object with the number of kills that hit a running run, and the number of
continuations from a checkpoint. Each attempt is a forked child, so kills hit the run and not the
imports.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from in_process import composed

from runner.core.settings import Settings
from runner.runs.execution import execute
from runner.runs.run import Run

torch.set_num_threads(1)


def attempt(run: Run, settings: Settings, seconds: float | None) -> bool:
    """Compute the run in a child process for at most `seconds`; return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            execute(run, settings)
            os._exit(0)
        finally:
            os._exit(1)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, (run.folder / "error.txt").read_text()
    return False


def main() -> None:
    """Kill the run until it is complete, and print the counts."""
    study, outputs, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(study)
    settings, config = composed(f"study={study}", "scale=smoke")
    settings.checkpoint_seconds, settings.device = 0, "cpu"

    whole = Run(config, outputs / "whole")
    start = time.monotonic()
    attempt(whole, settings, None)
    duration = time.monotonic() - start

    hits = 0
    part = Run(config, outputs / "killed")
    for _ in range(kills):
        settings.force = part.is_complete()  # the kills continue when it is computed again
        # Every attempt continues where the last one was killed: short attempts reach any moment.
        hits += attempt(part, settings, chance.uniform(0, min(1.0, duration / 2)))
    settings.force = False
    attempt(part, settings, None)
    log = (part.folder / "run.log").read_text()
    print(json.dumps({"hits": hits, "resumed": log.count("goes on"), "seconds": duration}))


if __name__ == "__main__":
    main()
