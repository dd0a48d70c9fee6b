"""Study `example20`: Example 20 of paper D."""
