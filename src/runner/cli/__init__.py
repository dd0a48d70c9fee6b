"""The command line, and all that knows Hydra: composing, grids, launching, help."""
