"""The sweeper of the runner: hands over to `runner.cli.sweeping` at once.

Hydra accepts sweepers from the namespace package `hydra_plugins` alone. Importing this module must
be fast: Hydra does so at every start.
"""

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class GridSweeperConfig:
    """`hydra/sweeper=grids`.

    params: key -> choices as they are typed, for what is not typed; as of Hydra's own sweeper.
    """

    _target_: str = "hydra_plugins.grid_sweeper.GridSweeper"
    params: Any = None


ConfigStore.instance().store(
    group="hydra/sweeper", name="grids", node=GridSweeperConfig, provider="runner"
)


class GridSweeper(Sweeper):
    """A union of grids, of which only what is incomplete is launched."""

    def __init__(self, params: Any) -> None:
        self.params = params or {}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before `sweep`."""
        self.hydra_context, self.task_function = hydra_context, task_function
        self.config = config

    def sweep(self, arguments: list[str]) -> None:
        """See `runner.cli.sweeping.sweep`."""
        from runner.cli.sweeping import sweep

        preset = [f"{key}={choices}" for key, choices in self.params.items()]
        sweep(self.config, preset, arguments, self.hydra_context, self.task_function)
