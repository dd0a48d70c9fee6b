"""A classifier of digits inside a frozen random network, by construction and by training."""
