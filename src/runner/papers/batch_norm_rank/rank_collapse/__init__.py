"""Study `rank_collapse`: figures 1 and 2 of paper B."""
