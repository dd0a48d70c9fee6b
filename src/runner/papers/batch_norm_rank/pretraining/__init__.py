"""Study `pretraining`: figures 4, 6, 11 and 12 of paper B."""
