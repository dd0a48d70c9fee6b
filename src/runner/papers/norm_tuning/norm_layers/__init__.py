"""Study `norm_layers`: the construction of Theorem 1 in real normalization layers."""
