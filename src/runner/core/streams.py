"""Random streams: one for each replicate and each purpose, all derived from one seed.

Guarantees:

- A stream depends on the seed, the replicate, the purpose and the study's list of purposes alone.
  So a replicate draws the same numbers alone, in a stack, and in a run that is resumed.
- No two streams of a run share a state. torch's CPU generator keeps 32 bits of a seed, so two seeds
  can give one state. Then the later stream takes the next key. Later means a higher replicate, or
  the same replicate and a later purpose in the study's list. A run need not draw from the earlier
  stream.
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
"""Number of states of torch's CPU generator, which keeps the low 32 bits of a seed."""


def stream_seed(seed: int, replicate: int, purpose: str, key: int = 0) -> int:
    """Return the seed of one random stream: 63 bits of a SHA-256 of the arguments.

    purpose: what the numbers are for, such as "weights". key: another key gives another seed; it is
    above 0 only if an earlier stream has the same state.
    """
    words = f"{seed}/{replicate}/{purpose}" + (f"/key {key}" if key > 0 else "")
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


RANDOM_PIXELS = ("random pixels train", "random pixels test")
"""Purposes of `data=random_pixels`. They come first in each study's list of purposes."""

SUBSET = "subset of images"
"""Purpose of drawing `train_images` images from a user's file."""


def order_of(epoch: int) -> str:
    """Return the purpose of the random stream for the order of the data in an epoch, from 1."""
    return f"order of epoch {epoch}"


def orders(epochs: int) -> tuple[str, ...]:
    """Return the purposes of the random streams that order the data in epochs 1 to `epochs`."""
    return tuple(order_of(epoch) for epoch in range(1, epochs + 1))


class Streams:
    """All random streams of one seed: one for each replicate and each purpose.

    seed: the run's seed. purposes: the study's list of purposes, such as "weights", in a fixed
    order.
    """

    def __init__(self, seed: int, purposes: Iterable[str]) -> None:
        self.seed, self.purposes = seed, dict.fromkeys(purposes)
        self.states: set[int] = set()
        self.replicates: list[dict[str, int]] = []
        """Seeds by purpose, for each replicate up to the highest that a caller asked for."""

    def seed_of(self, replicate: int, purpose: str) -> int:
        """Return the 63-bit seed of the stream for one replicate and one purpose.

        replicate: its index, from 0. Raises KeyError if the list of purposes does not have the
        purpose.
        """
        if purpose not in self.purposes:
            raise KeyError(f"no stream {purpose!r}: add it to purposes() in the study's config.py")
        while len(self.replicates) <= replicate:
            r = len(self.replicates)
            self.replicates.append({name: self._free(r, name) for name in self.purposes})
        return self.replicates[replicate][purpose]

    def _free(self, replicate: int, purpose: str) -> int:
        """Return the first seed of a stream with a state that no earlier stream has."""
        seeds = (stream_seed(self.seed, replicate, purpose, key) for key in count())
        free = next(seed for seed in seeds if seed % STATES not in self.states)
        self.states.add(free % STATES)
        return free

    def generator(self, replicate: int, purpose: str) -> "torch.Generator":
        """Return a new CPU generator, at its beginning, for one replicate and one purpose.

        replicate: its index, from 0. Raises KeyError if the list of purposes does not have the
        purpose.
        """
        import torch  # late: checking a configuration needs none of it

        return torch.Generator().manual_seed(self.seed_of(replicate, purpose))


@lru_cache(maxsize=32)
def streams(seed: int, purposes: tuple[str, ...]) -> Streams:
    """Return all random streams of a seed.

    purposes: the study's list of purposes, such as "weights", in its order.
    """
    return Streams(seed, purposes)


def generator(seed: int, replicate: int, purpose: str) -> "torch.Generator":
    """Return a new CPU generator that is determined by seed, replicate and purpose.

    purpose: any text; unlike in `Streams`, a study need not list it. With the same seed and
    purpose, different replicates have generators with different states.
    """
    return Streams(seed, (purpose,)).generator(replicate, purpose)


def generators(seed: int, replicates: int, purpose: str) -> "list[torch.Generator]":
    """Return `generator(seed, r, purpose)` for each replicate r from 0 to `replicates` − 1."""
    listed = Streams(seed, (purpose,))
    return [listed.generator(replicate, purpose) for replicate in range(replicates)]
