"""Study `norm_active`: training γ with active hidden ReLUs, and a dense network."""
