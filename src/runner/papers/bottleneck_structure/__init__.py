"""Paper D: Bottleneck Structure in Learned Features: Low-Dimension vs Regularity Tradeoff."""
