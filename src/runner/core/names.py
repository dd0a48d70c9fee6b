"""The names that parameters may have in several studies; what each stands for is where it is used.

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

IN_PICTURES = {
    "matrix_rank": "rank",
    "rank_bound": "r",
    "mean_rank_bound": "mean r",
    "normalization=none": "plain",
    "method=vanilla": "plain",
}
"""What captions and pictures call a column of a table, or a value in one."""
