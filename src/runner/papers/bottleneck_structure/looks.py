"""How ranks and spectra look in all figures of paper D."""

import pandas as pd
from matplotlib.axes import Axes

from runner.results.style import BLUE, BROWN, GREEN, GREY, ORANGE, PALE, PURPLE, VERMILION, Look

COLORS = (GREY, VERMILION, BLUE, ORANGE, PURPLE, GREEN, BROWN)
RANKS = tuple(map(Look, COLORS, "PvosD^X"))
"""By rank 0, 1, 2, ...; the last one for all larger ranks."""

EDGE = "#9a9a9a"
"""Of the grey band below which all values but the first lie."""


def rank_look(rank: int) -> Look:
    """Return the look of a rank."""
    return RANKS[min(int(rank), len(RANKS) - 1)]


def draw_spectra(axes: Axes, spectrum: pd.DataFrame, rank: int, thick: float = 2.2) -> None:
    """The first `rank` singular values of every W_l as lines; a grey band up to the next one.

    spectrum: rows of one network, with layer, index from 1 on and singular_value.
    """
    table = spectrum.pivot(index="layer", columns="index", values="singular_value").fillna(0)
    if rank + 1 in table:
        axes.fill_between(table.index, table[rank + 1], color=PALE, edgecolor=EDGE, linewidth=0.8)
    large = [index for index in table if index <= rank]
    axes.plot(table.index, table[large], color=rank_look(rank).color, linewidth=thick)
    axes.set(xlim=(table.index.min() - 0.6, table.index.max() + 0.6), ylim=(0, None))


MEASURES = {
    "parameter_norm": "‖θ‖²",
    "train_cost": "training cost",
    "excess": "‖θ‖² above its limit",
    "representation_cost": "cost by the formula",
    "middle_lipschitz": "Lipschitz constant of the middle",
    "lipschitz": "largest Lipschitz constant",
    "ntk_trace": "Tr Θ",
    "jacobian_rank": "rank of the Jacobian",
    "bottleneck_rank": "rank of the middle layer",
}
"""What pictures and printed tables call the columns of tables."""
