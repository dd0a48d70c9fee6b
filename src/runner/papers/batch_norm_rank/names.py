"""Names of columns, values and conditions of paper B in pictures, tables and rules."""

NAMES = {
    "batch_norm": "batch norm",
    "batch_norm_no_mean": "without mean\nsubtraction",
    "batch_norm_asymmetric": "batch norm,\nasymmetric",
    "vanilla": "plain",
    "vanilla_100x": "plain, 100 ×\nlearning rate",
    "vanilla_random_pixels": "plain, random\npixels",
    "pretrained": "pre-trained",
    "scale_matched": "random weights\nof the same size",
    "batch": "batch norm",
    "batch_no_mean": "without mean\nsubtraction",
    "layer": "layer norm",
    "rms": "RMS norm",
    "none": "plain",
    "gaussian": "Gaussian",
    "relu": "ReLU",
    "text": "as the paper describes",
}
"""Names of methods and normalizations in pictures; captions omit the line break."""

MEASURES = {
    "matrix_rank": "rank",
    "rank": "rank",
    "soft_rank": "soft rank",
    "rank_bound": "r",
    "mean_rank_bound": "mean r",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "gradient_alignment": "alignment of gradients",
    "law": "distribution",
    "tau": "τ",
    "dtype": "floating-point type",
    "index": "index i",
}
"""Names of the tables' columns in pictures."""

CONDITIONS = {
    "fit_of_batch_norm > 0.5": "with batch norm the learned fraction is above 0.5",
    "M >= 1000": "pre-training has at least 1,000 minibatches",
    "M >= 1000 and epochs >= 50": "pre-training has at least 1,000 minibatches and training at"
    " least 50 epochs",
}
"""Conditions on results in words, as rules print them."""

UNMET = {
    "fit_of_batch_norm > 0.5": "with batch norm the learned fraction is at most 0.5",
    "M >= 1000": "pre-training has fewer than 1,000 minibatches",
    "M >= 1000 and epochs >= 50": "pre-training has fewer than 1,000 minibatches or training fewer"
    " than 50 epochs",
}
"""The opposite of each condition in words, for the notes on excluded measurements."""
