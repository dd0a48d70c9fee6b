"""Study `breaking_bn`: figures 5, 7, 10 and 13 of paper B."""
