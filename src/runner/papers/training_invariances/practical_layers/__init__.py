"""Study `practical_layers`: what gradient flow conserves in the layers that people use."""
