"""Study `constructions`: Theorems 1 to 3 and Corollary 1 of paper A."""
