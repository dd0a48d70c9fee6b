"""Study `bottleneck`: figure 1 of paper D."""
