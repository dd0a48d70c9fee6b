"""A module for each subcommand. None of them uses Hydra directly."""
