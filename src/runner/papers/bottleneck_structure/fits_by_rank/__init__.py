"""Study `fits_by_rank`: networks of rank 1 and 2 that fit points, a control for Theorem 10."""
