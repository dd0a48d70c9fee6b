"""Benchmarks: speed against the baseline, and how cost grows with size."""
