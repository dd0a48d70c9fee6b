"""Random streams: one for every replicate and every purpose, all derived from one seed.

A stream depends on nothing but (seed, replicate, purpose). So a replicate draws the same numbers
whether it runs alone or in a stack, and a study that draws more data keeps its initialization. All
streams are the CPU's, since a GPU's generators give other numbers: what is drawn is moved.
"""

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def stream_seed(seed: int, replicate: int, purpose: str) -> int:
    """Return the 63-bit seed of one stream: the head of SHA-256 over (seed, replicate, purpose)."""
    digest = hashlib.sha256(f"{seed}/{replicate}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, replicate: int, purpose: str) -> "torch.Generator":
    """Return a generator on the CPU for one replicate and one purpose (data, order...)."""
    import torch  # late: checking a configuration needs none of it

    return torch.Generator().manual_seed(stream_seed(seed, replicate, purpose))


def generators(seed: int, replicates: int, purpose: str) -> "list[torch.Generator]":
    """Return one generator per replicate 0..replicates-1."""
    return [generator(seed, replicate, purpose) for replicate in range(replicates)]
