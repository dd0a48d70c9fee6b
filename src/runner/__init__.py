"""Reproduces and checks the experiments of four papers on deep-learning theory.

    import runner

    run = runner.run("rank_collapse", depth=32, scale="smoke")
    run.tables()["metrics"]                 # a pandas data frame, one row per measurement
    runs = runner.sweep("example20", seed=[0, 1, 2], scale="smoke")
    runner.tables(runs)["metrics"]          # the rows of all runs, with their parameters
    runner.plot(runs, x="seed", y="excess")  # a matplotlib figure
    fig = runner.figure("fig4", scale="smoke")
    tables = fig.compute()
    fig.draw(tables)                        # a matplotlib figure
    fig.judge(tables)                       # which of the paper's claims hold

Importing this package loads neither torch nor matplotlib.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.api import (
        Figure,
        add_studies,
        figure,
        load,
        own_file,
        plot,
        register,
        run,
        sweep,
        tables,
    )

__all__ = [
    "Figure", "add_studies", "figure", "load", "own_file", "plot", "register", "run", "sweep",
    "tables",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a function of `runner.api`, imported when it is used, or `__version__`."""
    if name == "__version__":
        from importlib.metadata import version

        return version("theory-runner")
    if name not in __all__:
        raise AttributeError(f"module 'runner' has no attribute {name!r}")
    from runner import api

    return getattr(api, name)


def __dir__() -> list[str]:
    """Return the public names, so that completion knows functions that are not imported yet."""
    return [*__all__, "__version__"]
