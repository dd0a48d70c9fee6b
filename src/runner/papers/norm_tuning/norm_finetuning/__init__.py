"""Study `norm_finetuning`: only the normalization layers of residual networks are trained."""
