"""Study `norm_classifier`: a digit classifier, its exact copy, and trained copies."""
