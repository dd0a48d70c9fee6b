"""Study `annealing`: annealed and constant weight decay from the same initial weights."""
