"""Study `low_rank_training`: what of the low rank of paper C survives in training as usual."""
