"""Study `rank_one`: Theorem 10 of paper D."""
