"""Study `linear`: the representation cost of trained deep linear networks."""
