"""The items of Theorem 1: between which layers all of D is invariant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One item; to add another is to add it here: its panel, claim and test follow.

    kinds: of the layers before and behind; none: it is about the inside of a block.
    """

    number: int
    where: str
    title: str
    kinds: tuple[tuple[str, str], ...] = ()


ITEMS = (
    Item(1, "consecutive fully connected layers", "dense – dense", (("dense", "dense"),)),
    Item(2, "consecutive convolutions", "conv – conv", (("conv", "conv"),)),
    Item(3, "within residual blocks (identity, diagonal, free)", "within a block"),
    Item(4, "between free residual blocks", "free – free", (("residual_free", "residual_free"),)),
    Item(5, "a convolution and a fully connected layer", "conv – dense", (("conv", "dense"),)),
    Item(6, "a convolution and a free residual block", "conv – free", (("conv", "residual_free"),)),
    Item(
        7,
        "free residual blocks and fully connected layers",
        "free – dense",
        (("residual_free", "dense"), ("dense", "residual_free")),
    ),
)

WITHIN = next(item.number for item in ITEMS if not item.kinds)
"""The item about the inside of a block."""


def item_between(before: str, behind: str) -> int:
    """The item about two layers of these kinds; 0 where Theorem 1 has none."""
    found = [item.number for item in ITEMS if (before, behind) in item.kinds]
    return found[0] if found else 0
