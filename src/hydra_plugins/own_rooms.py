"""Rooms of one's own on Hydra's search path: see `runner.core.rooms`."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin


class OwnRooms(SearchPathPlugin):
    """Their YAML files stand behind the program's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra before it composes."""
        from runner.core.rooms import own_rooms  # late: Hydra imports all plugins at every start

        for room in own_rooms():
            search_path.append(provider=room.name, path=f"file://{room.conf}")
