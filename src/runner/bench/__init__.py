"""Benchmarks: timing against the straightforward way, growth of cost with size, the table."""
