"""All code that uses Hydra: from a command's arguments to checked jobs and their processes."""
