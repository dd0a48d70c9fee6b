"""Names that parameters of several studies accept; the named module says what each means.

A name added here needs its line in the table of the module that is named.
"""

ACTIVATIONS = ("relu", "linear", "tanh", "leaky_relu", "gelu")
"""`networks.activations`"""

NORMALIZATIONS = ("none", "batch", "batch_no_mean")
"""`networks.normalization`"""

INITIALIZATIONS = ("pytorch", "he", "unit", "asymmetric", "orthogonal", "gain")
"""`networks.initialization`"""

OPTIMIZERS = ("sgd", "momentum", "adam")
"""`training.optimizers`"""

SCHEDULES = ("constant", "cosine", "exponential")
"""`training.schedules`"""
