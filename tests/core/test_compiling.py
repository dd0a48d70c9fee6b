import os
import random

import numba
import pytest
import warm

from runner.core import compiling


def test_compiled_code_needs_no_folder_for_its_cache(monkeypatch):
    original = numba.njit

    def without_folder(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(*arguments, **options)

    monkeypatch.setattr(numba, "njit", without_folder)
    assert compiling.compiled(lambda x: x + 1)(1) == 2


MODULE = """
import logging
import numba
import numpy as np
numba.config.reload_config()  # for NUMBA_CACHE_DIR
from runner.core.compiling import one_pass

logging.basicConfig(level=logging.INFO)

@one_pass
def total(x):
    s = 0.0
    for i in range(x.size):
        s += np.exp(-x[i]) * x[i] if x[i] > 3 else -x[i]
    return s

print(total(np.arange(100.0)), sum(total.stats.cache_hits.values()))
"""


@pytest.fixture
def compute(tmp_path):
    """Computes a sum in a process of its own: what it prints, and what it says."""
    (tmp_path / "sum.py").write_text(MODULE)

    def start() -> tuple[str, str]:
        kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        done = warm.run(str(tmp_path / "sum.py"), env=os.environ | kept)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return start


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Many of its bits are others; numba would take that for code and crash, or sum up nonsense."""
    changed, chance = bytearray(content), random.Random(0)
    for place in chance.sample(range(len(content)), len(content) // 100):
        changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


def test_a_damaged_cache_is_compiled_again_once(compute, tmp_path):
    whole, said = compute()
    cached = whole[:-2] + "1\n", ""
    assert compute() == cached and said == ""
    for kind, damage in (
        ("nbi", cut),
        ("nbc", flipped),
    ):
        (path,) = (tmp_path / "kept").rglob(f"*.{kind}")
        path.write_bytes(damage(path.read_bytes()))
        again, said = compute()
        assert again == whole and "is compiled again: its stored code is damaged" in said
    assert compute() == cached
