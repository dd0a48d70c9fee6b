"""Study `stability`: learning rate, tangent kernel and representations of paper D, section 4."""
