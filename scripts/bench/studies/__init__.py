"""Benchmarks of the studies, one module each: `compare()` and `GROWTH`."""
