"""Colors and markers of statements, layers and optimizers in all figures of paper C.

A blue line is a quantity that gradient flow conserves by the paper, a vermilion line one that the
flow changes.
"""

from runner.papers.training_invariances.names import NAMES
from runner.results.looks import BLUE, DASHED, VERMILION, Look, looks_of

INVARIANT, NOT_INVARIANT = Look(BLUE), Look(VERMILION, "s")

METHODS, KINDS = looks_of(NAMES["method"]), looks_of(NAMES["kind"])
"""Looks of optimizers and of kinds of layers."""

SQUARES = {"remainder": Look(BLUE, "s"), "top": Look(VERMILION, "o", DASHED)}
"""Looks of squared singular values: all but the largest, and the largest."""
