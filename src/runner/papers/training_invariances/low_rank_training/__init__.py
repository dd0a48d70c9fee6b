"""Study `low_rank_training`: the low rank of paper C in ordinary training."""
