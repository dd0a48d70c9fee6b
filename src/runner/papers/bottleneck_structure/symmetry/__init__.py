"""Study `symmetry`: figure 2 of paper D."""
