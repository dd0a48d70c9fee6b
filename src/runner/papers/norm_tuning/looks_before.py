"""How methods, optimizers and theorems look in all figures of paper A."""

from runner.results.style_before import (
    BLACK,
    BLUE,
    DASHDOT,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    INDIGO,
    LONG,
    OLIVE,
    ORANGE,
    PURPLE,
    SHORT,
    SKY,
    SOLID,
    VERMILION,
    Look,
)

SGD = Look(BLUE, "o", SOLID, "SGD on scales and shifts")
CONSTRUCTION = Look(GREEN, "s", SOLID, "construction from the target")
ADAM = Look(VERMILION, "^", DASHDOT, "Adam on scales and shifts")
BATCH_STATISTICS = Look(SKY, "v", SHORT, "the same with batch statistics")

METHODS = {
    "sgd": SGD,
    "batch_norm": BATCH_STATISTICS,
    "best": Look(INDIGO, "P", DASHDOT, "best of SGD, momentum, Adam on them"),
    "teacher_construction": CONSTRUCTION,
    "corrected_construction": Look(OLIVE, "X", DOTTED, "the same, means put right"),
    "student_construction": Look(ORANGE, "D", SOLID, "construction from the dense network"),
    "dense": Look(BLACK, "^", DASHED, "SGD on a dense network (twice the samples)"),
    "dense_best": Look(GREY, "<", LONG, "best on a dense network (as many samples)"),
}
"""Blue, green, orange and black are the paper's colours."""

OPTIMIZERS = {
    "sgd": Look(BLUE, "o", label="SGD"),
    "momentum": Look(PURPLE, "s", label="momentum"),
    "adam": Look(VERMILION, "^", label="Adam"),
}

THEOREMS = {
    "wide": Look(GREEN, "s", SOLID, "Theorem 1, m = d²"),
    "wider": Look(OLIVE, "v", SOLID, "Theorem 1, m = 2d²"),
    "low_rank": Look(BLUE, "o", SOLID, "Corollary 1, r = {rank}"),
    "deep": Look(VERMILION, "D", SOLID, "Theorem 2, k = {block}"),
    "sparse": Look(PURPLE, "^", SOLID, "Theorem 3, K of full rank"),
}

LAYER_NORM = Look(PURPLE, "D", LONG, "LayerNorm")
