"""One module for each subcommand; none knows Hydra."""
