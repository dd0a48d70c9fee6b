"""Printed names of columns, values and conditions in pictures, tables and rules of paper A."""

MEASURES = {
    "target_width": "target width d",
    "test_mse": "test error",
    "train_mse": "training error",
    "mse": "error",
    "relative_mse": "test error / variance",
    "max_abs_error": "largest error",
    "numerical_rank": "rank",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "train_samples": "training examples",
    "samples": "number of training examples",
    "epochs": "number of epochs",
    "layer": "kind of layer",
}
"""What pictures and printed tables call the columns of tables."""

NAMES = {
    "student construction": "construction from the dense network",
    "teacher construction": "construction from the target",
    "corrected construction": "construction with corrected means",
    "dense": "SGD on the dense network",
    "dense by adam": "Adam on the dense network",
    "sgd": "SGD on γ and β",
    "sgd with fixed statistics": "SGD with fixed statistics",
    "adam": "Adam on γ and β",
    "wide": "Theorem 1",
    "low_rank": "Corollary 1",
    "deep": "Theorem 2",
    "sparse": "Theorem 3",
    "norm": "γ and β",
    "all": "all parameters",
    "random_weights": "equally many weights at random places",
    "batch_norm with biases": "BatchNorm with biases",
    "layer_norm with biases": "LayerNorm with biases",
    "rms_norm with biases": "RMSNorm with biases",
}
"""What rules and printed tables call values."""

CONDITIONS = {
    "numerical_rank == d ** 2": "the linear system has full rank",
    "rounding < 1": "the bound on the rounding error is below 1",
    "inside_grid": "the best learning rate is inside the grid",
}
"""What rules call conditions on results."""

UNMET = {
    "numerical_rank == d ** 2": "the linear system lacks full rank",
    "rounding < 1": "the bound on the rounding error is 1 or more",
    "inside_grid": "the best learning rate is an end of the grid",
}
"""What notes say of the measurements that do not meet such a condition."""
