"""Paper C: Training invariances and the low-rank phenomenon: beyond linear networks."""
