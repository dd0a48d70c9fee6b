"""All that knows Hydra: from the words of a command to checked jobs, and their processes."""
