"""Study `rank_or_size`: is it the rank, or the size of the activations, that lets networks learn?"""
