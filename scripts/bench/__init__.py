"""Benchmarks: speed compared with a baseline, and growth of the cost with size."""
