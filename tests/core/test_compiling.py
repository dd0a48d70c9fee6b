import numba

from runner.core import compiling


def test_compiled_code_needs_no_folder_for_its_cache(monkeypatch):
    original = numba.njit

    def without_folder(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(*arguments, **options)

    monkeypatch.setattr(numba, "njit", without_folder)
    assert compiling.compiled(lambda x: x + 1)(1) == 2
