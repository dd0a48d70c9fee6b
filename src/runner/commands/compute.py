"""The commands `runner study=...` and `runner figure=...`: compute runs, draw, judge, print.

`compute` makes jobs from the arguments (`compose.orders`). `carry_out` computes the missing runs
(`compose.launching`, `runs.execution`), makes the figures (`results.figure`) and prints the
results.
"""

import logging
import time

from runner.compose import orders
from runner.compose.composing import hydra_ready
from runner.compose.launching import announced, launch, plan
from runner.core.errors import InputError, RunFailed, show_traceback
from runner.core.progress import log_to_terminal
from runner.core.shell import command
from runner.core.user_functions import described
from runner.results.reported import report

log = logging.getLogger("runner")


def compute(words: list[str]) -> int:
    """Carry out the command `runner study=...` or `runner figure=...`; return 0.

    words: the arguments. Commands with other flags of Hydra (`--cfg job`, `-sc`) are passed on to
    Hydra. So are commands with a sweeper that chooses jobs by earlier results. Raises InputError
    for wrong arguments, and RunFailed if a run failed.
    """
    log_to_terminal(words)
    is_dry = "--dry-run" in words
    words = [word for word in words if word != "--dry-run"]
    flags = [word for word in words if word.startswith("-")]
    others, note = set(flags) - {"-m", "--multirun"}, ""
    if is_dry and others:
        raise InputError(f"--dry-run computes nothing: omit {' '.join(sorted(others))}")
    if not others:
        typed = [word for word in words if word not in flags]
        with hydra_ready(typed):
            order = orders.compose_order(typed, multirun=bool(flags))
            if is_dry:
                return tell(order)
            if not order.searches:
                return carry_out(order)
        where = order.composed.outputs
        plot = command("runs", "plot", "--study", order.composed.study, outputs=where)
        note = f"a picture: {plot}\n"
    from runner.compose import hydra_main  # late: seldom needed

    hydra_main.main(words)
    print(note, end="")
    return 0


def tell(order: orders.Order) -> int:
    """Print which runs a command would compute, and how long they would take; return 0.

    order: the jobs of the command. Raises InputError if the sweeper chooses jobs by the results of
    earlier jobs, or if a figure has no drawing.
    """
    if order.searches:
        raise InputError(
            "--dry-run cannot list these runs: the sweeper chooses each run by earlier results"
        )
    for figure in order.figures:
        if left_out := figure.not_drawn():
            log.info(left_out)
    jobs, note = plan(order)
    lines = [*map(str, (job.run for job in jobs)), note]
    if not jobs:
        lines += ["complete already"] if not note else []
    elif not announced(order, jobs):
        lines.append("how long they take is unknown: nobody has measured all of these runs")
    print(*filter(None, lines), sep="\n")
    return 0


def carry_out(order: orders.Order, redraw: bool = True) -> int:
    """Compute the missing runs of an order, make its figures, and print the results; return 0.

    redraw: whether to draw figures again that were drawn from the same runs before. If a run fails,
    all other runs are still computed. Raises InputError as `launch` does, and RunFailed at the end
    if a run or a figure failed.
    """
    start, figures = time.monotonic(), order.figures
    for figure in figures:
        if note := figure.not_drawn():  # before anything is computed
            log.info(note)
    failures = launch(order)
    drawn = []
    for figure in figures:
        if missing := sum(not run.is_complete() for run in figure.runs):
            failures.append(f"{figure.name}: {missing} of {len(figure.runs)} runs are missing")
            continue
        state = "drawn" if redraw or not figure.is_current() else "unchanged"
        try:
            text = figure.make() if state == "drawn" else f"{figure.name}: unchanged"
        except Exception as error:  # of any kind: all other figures are drawn nevertheless
            if len(figures) == 1 and isinstance(error, InputError):
                raise
            show_traceback()
            text = f"{described(error)} (its traceback: hydra.verbose=true)"
            failures.append(f"{figure.name} is not drawn: {text}")
            continue
        drawn.append(figure)
        if len(figures) == 1:
            print(text)
        else:
            log.info("[%d/%d] %s: %s", len(drawn), len(figures), figure.name, state)
    runs = [job.run for job in order.jobs]
    if len(figures) > 1 or not figures and len(runs) > 1:
        from runner.results import sweep_report  # late: a single run or figure needs none

        took = f" in {time.monotonic() - start:.0f} s"
        print(sweep_report.summary(drawn) + took if figures else sweep_report.ending(runs))
    elif not figures and runs[0].is_complete():
        print(report(runs[0]))
    if failures:
        raise RunFailed("\n".join(failures))
    return 0
