"""Inputs: Gaussian streams and image datasets."""
