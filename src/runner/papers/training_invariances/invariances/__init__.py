"""Study `invariances`: the theorems of paper C along gradient flow."""
