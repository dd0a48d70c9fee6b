"""Paper B, and its names of columns, values and conditions in pictures, tables and rules."""

from runner.core.papers import Paper
from runner.results.looks import (
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    INK,
    NAVY,
    OLIVE,
    ORANGE,
    PURPLE,
    RUST,
    SKY,
    VERMILION,
    Look,
    Name,
)

PAPER = Paper(
    "B",
    "Batch Normalization Provably Avoids Rank Collapse for Randomly Initialised Deep Networks",
    "NeurIPS 2020",
    "2003.01652",
    "networks",
)

BATCH_NORM, PLAIN = Look(BLUE), Look(ORANGE, "s")
NO_MEAN, ASYMMETRIC = Look(SKY, "^", DASHED), Look(GREEN, "v", DASHED)

NAMES = {
    "method": {
        "batch_norm": Name("batch norm", BATCH_NORM, rule="networks with batch norm"),
        "batch_norm_no_mean": Name("without mean\nsubtraction", NO_MEAN),
        "batch_norm_asymmetric": Name(
            "batch norm,\nasymmetric",
            ASYMMETRIC,
            rule="asymmetrically initialized networks with batch norm",
        ),
        "vanilla": Name("plain", PLAIN, rule="plain networks"),
        "vanilla_100x": Name(
            "plain, 100 ×\nlearning rate",
            Look(RUST, "", DASHED, 1.6),
            rule="plain networks at 100 times the learning rate",
        ),
        "vanilla_random_pixels": Name("plain, random\npixels", Look(INK, "", DOTTED, 1.8)),
        "pretrained": Name("pre-trained", rule="pre-trained networks"),
        "M = 5": Name("M = 5", rule="pre-trained networks (5 steps)"),
        "M = 75": Name("M = 75", rule="pre-trained networks (75 steps)"),
        "scale_matched": Name(
            "random weights\nof the same size", Look(GREY, "D", DASHED, hollow=True)
        ),
        "he": Name(
            "random, He",
            Look(GREY, "s", DASHED, hollow=True),
            rule="networks with He's random initialization",
        ),
        "unit_scale": Name(
            "random, unit size",
            Look(GREY, "v", DASHED, hollow=True),
            rule="randomly initialized networks of unit size",
        ),
        "orthogonalised": Name("orthogonalized", Look(GREY, "o", hollow=True)),
        "orthogonalised_half": Name("half orthogonalized", Look(GREY, "p", hollow=True)),
    },
    "family": {
        "signed": Name("random signs", Look(INK, "s"), rule="networks of size 1"),
        "product": Name("product A B", Look(BLUE, "P"), "product\nA B"),
        "copied": Name("copied units", Look(GREEN, "D", DASHED), "copied\nunits"),
        "flipped": Name("some signs flipped", Look(VERMILION, "^", DOTTED), "some signs\nflipped"),
        "sized": Name("zero biases", Look(BLUE)),
        "sized_layer_rates": Name(
            "a rate for each layer", Look(GREEN, "P", DASHED), "a rate for\neach layer"
        ),
        "even": Name(
            "the size of unscaled weights in every layer",
            rule="networks with the size of unscaled ones in all layers",
        ),
        "unscaled": Name("unscaled weights", Look(BLUE, hollow=True), rule="unscaled networks"),
        "unscaled_layer_rates": Name(
            "unscaled weights, a rate for each layer",
            rule="unscaled networks with a learning rate for each layer",
        ),
        "default_biases": Name("default biases", Look(ORANGE, "s", DOTTED), "default\nbiases"),
        "default_biases_unit": Name("default biases at size 1"),
        "pixels_255": Name("pixels × 255", Look(PURPLE, "v"), "pixels\n× 255"),
        "batch_norm": Name("batch norm", Look(SKY, "p")),
        "pretrained": Name("pre-trained", Look(RUST, "^", DASHED)),
        "pretrained_small": Name("pre-trained, at the size of default biases"),
        "size_of_pretrained": Name(
            "random weights at the size of pre-trained ones",
            Look(GREY, "D", hollow=True),
            "random, size of\npre-trained",
        ),
    },
    "normalization": {
        "batch": Name("batch norm", BATCH_NORM),
        "none": Name("plain", PLAIN),
        "batch_no_mean": Name(
            "without mean\nsubtraction", NO_MEAN, rule="batch norm without mean subtraction"
        ),
        "layer": Name("layer norm", Look(PURPLE, "D", DASHED)),
        "rms": Name("RMS norm", Look(OLIVE, "v", DOTTED)),
    },
    "init": {
        "pytorch": Name("usual\ninitialization", BATCH_NORM),
        "asymmetric": Name(
            "asymmetric\ninitialization", ASYMMETRIC, rule="asymmetric initialization"
        ),
    },
    "network": {
        "ReLU, batch norm": Name(
            "ReLU,\nbatch norm", BATCH_NORM, rule="ReLU networks with batch norm"
        ),
        "ReLU, plain": Name("ReLU, plain", PLAIN, rule="plain ReLU networks"),
        "batch norm": Name("batch norm", rule="networks with batch norm"),
        "layer norm": Name("layer norm", rule="networks with layer norm"),
        "RMS norm": Name("RMS norm", rule="networks with RMS norm"),
        "linear, batch norm": Name(
            "linear,\nbatch norm", Look(SKY, "^", DASHED), rule="linear networks with batch norm"
        ),
        "linear, batch norm, orthogonal weights": Name(
            "linear, batch\nnorm, orthogonal\nweights",
            Look(GREEN, "D", width=4.4),
            rule="linear networks with batch norm and orthogonal weights",
        ),
    },
    "range": {
        "all d": Name("all d", rule="all widths"),
        "the last doubling": Name("the last doubling", rule="the two largest widths"),
    },
    "law": {
        "gaussian": Name("Gaussian", Look(BLUE, "", width=3.4)),
        "uniform": Name("uniform", Look(NAVY, "o", hollow=True)),
        "rademacher": Name("Rademacher", Look(NAVY, "^", DASHED), "±1"),
        "asymmetric": Name("only positive"),
    },
    "protocol": {"text": "as the paper describes"},
    "dtype": {
        "float32": Name("float32", rule="single precision"),
        "float64": Name("float64", rule="double precision"),
    },
    "measure": {
        "average": "averages over depth",
        "spectrum": "singular values by layer",
        "product": "σ₂/σ₁ without batch norm",
        "expansion": "change of ‖M‖² in a layer",
        "input_rank": "inputs of lower rank",
    },
}
"""Names and looks of values, by column. Hollow markers show what is not in the paper."""

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
    "law": Name("distribution", rule="distribution of the weights"),
    "tau": "τ",
    "skip": Name("residual weight γ", rule="γ"),
    "regularity": "regularity constant α",
    "frobenius": "‖M‖²",
    "dtype": Name("floating-point type", rule="precision"),
    "index": Name("index i", rule="i"),
    "range": Name("range", rule="range of widths (all, or the two largest)"),
    "soft rank": "the soft rank",
    "r before training": "initial mean r",
    "r of the last layer before training": "initial r of the last layer",
    "rank of the last layer before training": "initial rank of the last layer",
}
"""Names of the tables' columns in pictures."""

SYMBOLS = {
    "γ": "residual weight",
    "d": "width",
    "L": "depth",
    "τ": "threshold",
    "i": "index",
}
"""What the symbols of rules are."""

CONDITIONS = {
    "d >= N": "the width d is at least the batch size",
    "d == N": "the width d is the batch size",
    "L == L.max()": "the depth L is the largest",
    "depth > 10": "the depth is above 10",
    "law == 'gaussian'": "the weights are Gaussian",
    "depth == depth.min()": "the depth is the smallest",
    "depth == depth.max()": "the depth is the largest",
    "fit_of_batch_norm > 0.5": "networks with batch norm reach a learned fraction above 0.5",
    "alignment > 0.9": "the alignment of gradients before training is above 0.9",
    "(γ == 1 or γ == 0.1)": "γ is 1 or 0.1",
    "L > 0": "L is at least 1",
    "M >= 1000": "pre-training has at least 1,000 minibatches",
    "M >= 1000 and epochs >= 50": "pre-training has at least 1,000 minibatches and training at"
    " least 50 epochs",
}
"""Conditions on results in words, as rules print them."""

UNMET = {
    "fit_of_batch_norm > 0.5": "networks with batch norm reach a learned fraction of at most 0.5",
    "alignment > 0.9": "the alignment of gradients before training is at most 0.9",
    "M >= 1000": "pre-training has fewer than 1,000 minibatches",
    "M >= 1000 and epochs >= 50": "pre-training has fewer than 1,000 minibatches or training fewer"
    " than 50 epochs",
}
"""The opposite of each condition in words, for the notes on excluded measurements."""
