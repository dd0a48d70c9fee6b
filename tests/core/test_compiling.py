import os

import numba
import pytest
import warm

from runner.core import compiling

MODULE = """
import numba
numba.config.reload_config()  # for NUMBA_CACHE_DIR
from runner.core.compiling import one_pass

@one_pass
def total(x):
    return x + 1

print(total(1), sum(total.stats.cache_hits.values()))
"""


def test_compiled_code_needs_no_folder_for_its_cache(monkeypatch):
    original = numba.njit

    def without_folder(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(*arguments, **options)

    monkeypatch.setattr(numba, "njit", without_folder)
    assert compiling.compiled(lambda x: x + 1)(1) == 2


@pytest.mark.parametrize(("new", "printed"), [("x + 1", "2 1"), ("x + 10", "11 0")])
def test_stored_code_is_used_until_the_source_changes(tmp_path, new, printed):
    path, kept = tmp_path / "total.py", os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for text in (MODULE, MODULE.replace("x + 1", new)):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        done = warm.run(str(path), env=kept)
    assert done.stdout.split() == printed.split(), done.stderr
