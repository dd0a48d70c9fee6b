"""Path of the repository, for tests that start the program."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
