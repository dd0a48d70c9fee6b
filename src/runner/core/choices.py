"""Names that parameters of several studies accept, with the module that defines them.

A new name needs an entry in the table of that module.
"""

ACTIVATIONS = ("relu", "linear", "tanh", "leaky_relu", "gelu")
"""`networks.activations`"""

NORMALIZATIONS = ("none", "batch", "batch_no_mean", "layer", "rms")
"""`networks.normalization`"""

INITIALIZATIONS = ("pytorch", "he", "unit", "asymmetric", "orthogonal", "gain")
"""`networks.initialization`"""

OPTIMIZERS = ("sgd", "momentum", "adam")
"""`training.optimizers`"""

SCHEDULES = ("constant", "cosine", "exponential")
"""`training.schedules`"""
