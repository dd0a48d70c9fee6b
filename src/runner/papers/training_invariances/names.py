"""Paper C, and its names of columns, values and conditions in pictures, tables and rules."""

from runner.core.papers import Paper
from runner.results.looks import (
    BLUE,
    DASHED,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    Look,
    Name,
)

PAPER = Paper(
    "C",
    "Training invariances and the low-rank phenomenon: beyond linear networks",
    "ICLR 2022",
    "2201.11968",
    "networks",
)

MEASURES = {
    "ratio": "fraction of ‖W‖²",
    "remainder": "change of the others",
    "log_flow_time": "log t",
    "data": "dataset",
    "item": "item of Theorem 1",
    "graph": Name("graph", rule="kind of network"),
    "1 - operator_ratio": Name("1 − ‖W‖₂² / ‖W‖²", rule="(1 − ‖W‖₂² / ‖W‖²)"),
    "1 - alignment": Name("1 − |⟨v, u⟩|", rule="(1 − |⟨v, u⟩|)"),
}
"""What pictures and printed tables call the columns of tables."""

GRAPHS = {
    "random_graph": Name("random graph", rule="random graphs"),
    "dense_graph": Name("dense graph", rule="graphs with DenseNet connections"),
}

NAMES = {
    "data": {"gaussian": Name("Gaussian", rule="Gaussian inputs")},
    "optimizer": {
        "sgd": Name("SGD", Look(BLUE, "s")),
        "momentum": Name("momentum", Look(ORANGE, "^")),
        "adamw": Name("AdamW", Look(PURPLE, "v")),
        "adam": Name("Adam", Look(VERMILION, "D")),
    },
    "method": {
        "gradient descent": Name("gradient descent", Look(INK)),
        "SGD": Name("SGD", Look(BLUE, "s")),
        "momentum": Name("momentum", Look(ORANGE, "^")),
        "AdamW": Name("AdamW", Look(PURPLE, "v")),
        "Adam": Name("Adam", Look(VERMILION, "D")),
    },
    "kind": {
        "dense": Name("fully connected", Look(INK, "", width=1.4)),
        "residual_free": Name("residual block", Look(GREEN, "", DASHED, 1.8)),
        "conv": Name("convolution", Look(PURPLE, "", width=1.4)),
    },
    "architecture": {
        "conv": "convolutions",
        "conv_free": "residual blocks of convolutions",
        "mlp": "fully connected",
        "linear": "linear",
        "mixed": "mixed",
        "relu_then_linear": Name("ReLU, then linear", rule="ReLU layers before linear ones"),
        "residual_diagonal": "residual blocks, diagonal skips",
        "residual_free": "residual blocks, trained skips",
        "residual_identity": "residual blocks, identity skips",
        **GRAPHS,
    },
    "graph": {
        "layers": Name("layers", rule="networks of layers"),
        **GRAPHS,
    },
    "loss_function": {"cross_entropy": "cross-entropy"},
    "network": {
        "average_pooling": "average pooling",
        "max_pooling": "max pooling",
        "batch_norm": "batch norm",
        "gated": "gated unit",
    },
}
"""Names and looks of values, by column."""

CONDITIONS = {
    "pair in ('active', 'mixed')": "the entries of D are of neurons with equal activation patterns",
    "pair == 'full'": "all entries of D are taken",
    "pair == 'diagonal'": "the diagonal of D is taken",
    "pair == 'layer'": "whole layers are compared",
    "not linear": "the neurons are nonlinear",
    "linear": "the neurons are linear",
    "item == 0": "no item of Theorem 1 applies",
    "not promised": "the paper does not say that they are conserved",
    "promised": "the paper says that they are conserved",
    "not diverged": "training does not diverge",
    "separates": "the risk falls below loss(0) / n",
    "pair == 'full' and linear and promised": "the quantity that drifts is D of two adjacent linear"
    " layers",
    "pair == 'full' and not linear and not promised": "the quantity that drifts is D of two"
    " adjacent ReLU layers",
    "pair == 'diagonal' and promised": "the quantity that drifts is the difference between the"
    " squared norms of a neuron's outgoing and incoming weights",
    "pair == 'layer' and promised": "the quantity that drifts is the difference between the squared"
    " norms of two layers, or of two cuts",
    "(pair in ('active', 'mixed') and not linear or pair == 'full' and linear and item == 0)"
    " and promised": "the quantity that drifts is the difference between the inner products of two"
    " neurons' outgoing and incoming weights",
    ("invariances", "separates"): "the network classifies every training example correctly",
    ("low_rank_training", "not diverged"): "training did not diverge",
    "not control": "gradient flow conserves the quantity",
    "control": "the quantity is a control",
    "method != 'Adam'": "the optimizer is not Adam",
    "method == 'Adam'": "the optimizer is Adam",
    "asymptotic": "p no longer changes with the learning rate",
}
"""What rules call conditions."""

UNMET = {
    "asymptotic": "the exponent p still changes with the learning rate",
    "not diverged": "training diverges",
    "separates": "the risk never falls below loss(0) / n",
}
"""What notes say of the measurements that do not meet such a condition."""
