"""The commands `runner study=...` and `runner figure=...`: compute runs, draw, judge, print.

`compute` composes the jobs of the arguments (`compose.orders`). `carry_out` computes the runs that
are missing (`compose.launching`, `runs.execution`), makes the figures (`results.figure`) and prints
the results.
"""

import logging
import time

from runner.compose import hydra_main, orders
from runner.compose.composing import hydra_ready
from runner.compose.launching import launch
from runner.core.errors import InputError, RunFailed, show_traceback
from runner.core.progress import prepare_log
from runner.results import preview, sweep_plot

log = logging.getLogger("runner")


def compute(words: list[str]) -> int:
    """Compute what the arguments ask for: a run, a sweep or a figure; return 0.

    Hydra itself handles its other flags (`--cfg job`, `-sc`), and sweepers that choose jobs by the
    results of earlier ones.
    """
    prepare_log(words)
    flags = [word for word in words if word.startswith("-")]
    if set(flags) - {"-m", "--multirun"}:
        return hydra_main.main(words)
    typed = [word for word in words if word not in flags]
    with hydra_ready(typed):
        order = orders.compose_order(typed, multirun=bool(flags))
        if not order.searches:
            return carry_out(order)
    hydra_main.main(words)
    print(f"a picture: python -m runner runs plot --study {order.composed.study}")
    return 0


def carry_out(order: orders.Order, redraw: bool = True) -> int:
    """Compute the runs that are missing, make the figures, and print the results; return 0.

    redraw: whether to draw figures again that were drawn from the same runs. A failed run stops no
    other run. Raises RunFailed at the end if a run or a figure failed.
    """
    start = time.monotonic()
    for figure in order.figures:
        if note := figure.not_drawn():  # before anything is computed
            log.info(note)
    failures = launch(order)
    complete = [job.run for job in order.jobs if job.run.is_complete()]
    drawn = []
    for figure in order.figures:
        if missing := sum(not run.is_complete() for run in figure.runs):
            failures.append(f"{figure.name}: {missing} of {len(figure.runs)} runs are missing")
            continue
        is_current = not redraw and figure.is_current()
        try:
            report = f"{figure.name}: unchanged" if is_current else figure.make()
        except Exception as error:  # of any kind: the other figures are drawn all the same
            if len(order.figures) == 1 and isinstance(error, InputError):
                raise
            show_traceback()
            report = f"{type(error).__name__}: {error} (its traceback: hydra.verbose=true)"
            failures.append(f"{figure.name} is not drawn: {report}")
            continue
        drawn.append(figure)
        if len(order.figures) == 1:
            print(report)
        else:
            state = "unchanged" if is_current else "drawn"
            log.info("[%d/%d] %s: %s", len(drawn), len(order.figures), figure.name, state)
    if len(order.figures) > 1:
        print(f"{sweep_plot.summary(drawn)} in {time.monotonic() - start:.0f} s")
    elif not order.figures and len(order.jobs) > 1:
        print(sweep_plot.ending([job.run for job in order.jobs]))
    elif not order.figures and complete:
        print(preview.report(complete[0]))
    if failures:
        raise RunFailed("\n".join(failures))
    return 0
