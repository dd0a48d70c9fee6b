"""Reproduces, and checks, the experiments of four deep-learning-theory papers."""
