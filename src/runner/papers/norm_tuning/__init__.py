"""Paper A: The Expressive Power of Tuning Only the Normalization Layers."""
