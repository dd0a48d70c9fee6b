"""Paper B: Batch Normalization Provably Avoids Rank Collapse for Random Deep Networks."""
