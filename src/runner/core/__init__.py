"""What every package uses, without torch: errors, random streams, progress, studies."""
