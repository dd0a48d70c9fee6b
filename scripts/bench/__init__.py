"""Benchmarks: speed against the straightforward way, and how cost grows with size."""
