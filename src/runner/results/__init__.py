"""Claims, figures, statistics, and the style of drawings. Nothing here depends on a paper."""
