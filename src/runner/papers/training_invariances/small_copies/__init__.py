"""Study `small_copies`: small copies of two experiments that the introduction explains."""
