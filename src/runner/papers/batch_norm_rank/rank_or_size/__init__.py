"""Study `rank_or_size`: does the rank or the size of activations let deep networks learn?"""
