"""Random streams: one for each replicate and each purpose, all derived from one seed.

What is promised:

- A stream depends on the seed, the replicate, the purpose and the study's list of purposes alone.
  So a replicate draws the same numbers alone, in a stack, and in a run that is resumed.
- No two streams of a run share a state. torch's CPU generator keeps 32 bits of a seed, so that two
  seeds can be equal there. Then the stream that comes later takes the next key. Later means: of a
  higher replicate, or of the same replicate and a later purpose in the study's list, whether or not
  a run draws from the earlier one.
- All streams are drawn on the CPU, because a GPU's generator gives other numbers.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Stream = Callable[[int, str], "torch.Generator"]
"""A function from replicate and purpose to a random stream."""

STATES = 2**32
"""How many states torch's CPU generator tells apart: it keeps the low 32 bits of a seed."""


def stream_seed(seed: int, replicate: int, purpose: str, key: int = 0) -> int:
    """Return the 63-bit seed of one stream: the head of SHA-256 over what it depends on.

    key: 0, or how many earlier streams have been found in the states of smaller keys.
    """
    words = f"{seed}/{replicate}/{purpose}" + f"/key {key}" * (key > 0)
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


RANDOM_PIXELS = ("random pixels train", "random pixels test")
"""Purposes of `data=random_pixels`; first in each list, since data know no other purposes."""


def order_of(epoch: int) -> str:
    """Return the purpose of the stream that orders the data of an epoch, counted from 1."""
    return f"order of epoch {epoch}"


def orders(epochs: int) -> tuple[str, ...]:
    """Return the purposes of the streams that order the data of epochs 1 to `epochs`."""
    return tuple(order_of(epoch) for epoch in range(1, epochs + 1))


class Streams:
    """All streams of one seed and one list of purposes."""

    def __init__(self, seed: int, purposes: Iterable[str]) -> None:
        self.seed, self.purposes = seed, dict.fromkeys(purposes)
        self.states: set[int] = set()
        self.replicates: list[dict[str, int]] = []
        """For each replicate that has been asked for, and all lower ones: seed by purpose."""

    def seed_of(self, replicate: int, purpose: str) -> int:
        """Return the 63-bit seed of one stream.

        Raises KeyError for a purpose that the study does not list.
        """
        if purpose not in self.purposes:
            raise KeyError(f"no stream {purpose!r}: add it to purposes() in the study's config.py")
        while len(self.replicates) <= replicate:
            r = len(self.replicates)
            self.replicates.append({each: self._free(r, each) for each in self.purposes})
        return self.replicates[replicate][purpose]

    def _free(self, replicate: int, purpose: str) -> int:
        """Return the first seed of a stream whose state no earlier stream has, and take it."""
        seeds = (stream_seed(self.seed, replicate, purpose, key) for key in count())
        free = next(each for each in seeds if each % STATES not in self.states)
        self.states.add(free % STATES)
        return free

    def generator(self, replicate: int, purpose: str) -> "torch.Generator":
        """Return a generator on the CPU for one replicate and one purpose of the list."""
        import torch  # late: checking a configuration needs none of it

        return torch.Generator().manual_seed(self.seed_of(replicate, purpose))


@lru_cache(maxsize=32)
def streams(seed: int, purposes: tuple[str, ...]) -> Streams:
    """Return the streams of a seed and a study's list of purposes."""
    return Streams(seed, purposes)


def generator(seed: int, replicate: int, purpose: str) -> "torch.Generator":
    """Return a generator on the CPU for one replicate and a purpose that no study lists.

    It shares no state with those of other replicates and this purpose.
    """
    return Streams(seed, (purpose,)).generator(replicate, purpose)


def generators(seed: int, replicates: int, purpose: str) -> "list[torch.Generator]":
    """Return one generator for each replicate 0..replicates-1, as `generator` does."""
    listed = Streams(seed, (purpose,))
    return [listed.generator(replicate, purpose) for replicate in range(replicates)]
