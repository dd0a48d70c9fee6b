"""The sweeper of the runner: a union of grids, of which only what is incomplete is launched.

Hydra accepts sweepers from the namespace package `hydra_plugins` alone; the logic is in
`runner.sweeps`. Importing this module must be fast: Hydra does so at every start.
"""

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class GridSweeperConfig:
    """`hydra/sweeper=grids`. grids: scale -> list of grids; null: the command line is the grid."""

    _target_: str = "hydra_plugins.grid_sweeper.GridSweeper"
    grids: Any = None


ConfigStore.instance().store(
    group="hydra/sweeper", name="grids", node=GridSweeperConfig, provider="runner"
)


class GridSweeper(Sweeper):
    """Checks all jobs, launches those whose run is not complete, and reports failures."""

    def __init__(self, grids: Any) -> None:
        self.grids = grids

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before `sweep`."""
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run the sweep, then draw the figure that it belongs to.

        Raises InputError before anything runs, RunFailed at the end. (A Hydra callback would be the
        usual place for the figure, but Hydra turns what a callback raises into a warning.)
        """
        from runner import figures, sweeps
        from runner.configs import read
        from runner.launching import launch

        jobs = sweeps.expand(sweeps.grids_at(self.grids, self.config.scale), arguments)
        loader = self.hydra_context.config_loader
        composed = [read(loader.load_sweep_config(self.config, job)) for job in jobs]
        launch(self.launcher, jobs, composed)
        if self.config.figure is not None:
            found = sweeps.unique(config for _, config in composed)
            figures.make(self.config.figure, self.config.scale, found, composed[0][0].folder())
