"""What the Slurm presets need: runs as tasks of a queue that outlives the command."""
