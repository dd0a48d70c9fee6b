"""Study `residual_stream`: the rank of a transformer's residual stream at initialization."""
