"""Paper A, and its names of columns, values and conditions in pictures, tables and rules."""

from runner.core.papers import Paper
from runner.results.looks import (
    BLUE,
    DASHED,
    GREEN,
    GREY,
    NAVY,
    OLIVE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Look,
    Name,
)

PAPER = Paper(
    "A",
    "The Expressive Power of Tuning Only the Normalization Layers",
    "COLT 2023",
    "2302.07937",
    "networks",
)

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
    "samples": Name("number of training examples", rule="number of samples"),
    "epochs": "number of epochs",
    "layer": "kind of layer",
    ("bn_only", "rate"): Name("rate", rule="initial learning rate"),
}
"""What pictures and printed tables call the columns of tables."""

SET, TRAINED, DENSE = Look(GREEN, "s", width=3.4), Look(BLUE), Look("#000000", "^", DASHED, 1.8)
FROM_DENSE = Look(ORANGE, "", width=6.0)
"""Blue: γ and β are trained; green: computed from the target; orange: computed from a trained dense
network; black: this dense network. Hollow markers show what is not in the paper."""

NAMES = {
    "method": {
        "student_construction": Name("construction from the dense network", FROM_DENSE),
        "dense": Name("dense network", DENSE),
        "sgd": Name("γ and β trained", TRAINED),
        "teacher_construction": Name("construction from the target", SET),
        "target": Name("classifier", Look("#000000", "v"), rule="the classifier"),
        "construction": Name("construction", Look(GREEN, "s")),
        "active": Name(
            "trained,\nReLUs active",
            Look(VERMILION, "D"),
            rule="γ trained with active hidden ReLUs",
        ),
        "usual": Name(
            "trained from\nγ = 1, β = 0",
            Look(NAVY, "D", hollow=True),
            rule="γ and β trained from 1 and 0",
        ),
    },
    "series": {
        "student construction": Name(
            "construction from the dense network",
            FROM_DENSE,
            "construction\nfrom dense",
            "the construction from a dense network",
        ),
        "dense": Name("SGD on the dense network", DENSE, "dense, SGD", "a dense network"),
        "dense by adam": Name(
            "Adam on the dense network",
            Look(GREY, "^", DASHED, 1.8, hollow=True),
            "dense, Adam",
        ),
        "sgd with fixed statistics": Name(
            "SGD with fixed statistics",
            Look(SKY, dashes=DASHED, hollow=True),
            "SGD, fixed\nstatistics",
        ),
        "sgd again": Name("sgd again", Look(BLUE, "o", DASHED, 1.5, hollow=True)),
        "sgd": Name("SGD on γ and β", TRAINED, "SGD on\nγ and β", "SGD on γ and β"),
        "teacher construction": Name(
            "construction from the target",
            SET,
            "construction\nfrom target",
            "the construction from the target",
        ),
        "adam again": Name("adam again", Look(NAVY, "s", DASHED, 1.5, hollow=True)),
        "adam": Name("Adam on γ and β", Look(NAVY, "D", hollow=True), "Adam on\nγ and β"),
        ("teacher construction", "student construction"): "either construction",
        ("sgd", "teacher construction", "student construction"): "the best of SGD on γ and β and"
        " both constructions",
        ("teacher construction", "dense by adam"): "either the construction or a dense network"
        " trained by Adam",
    },
    "theorem": {
        "low_rank": Name("Corollary 1", Look(NAVY), "○ Corollary 1, low rank"),
        "wide": Name("Theorem 1", SET, "Theorem 1, wide"),
        "deep": Name("Theorem 2", Look(PURPLE, "D"), "Theorem 2, deep"),
        "sparse": "Theorem 3",
    },
    "arm": {
        "low_rank": Name("rank one (LoRA)", Look(OLIVE, "P", hollow=True)),
        "biases": Name("β only (BitFit)", Look(PURPLE, "s", hollow=True)),
        "last_layer": Name("last layer", Look(GREY, "v")),
        "random_weights": Name(
            "equally many weights at random places",
            Look(SKY, "D", hollow=True),
            "as many\nother weights",
        ),
        "norm": Name("γ and β", TRAINED),
        "all": Name("all parameters", DENSE, "everything"),
        "dense": Name("dense network", Look("#000000", "^"), rule="Adam on a dense network"),
        "rotated_weights": Name(
            "p with W = Q p",
            Look(GREY, "^"),
            "W in random axes,\nκ = 1",
            rule="Adam in random coordinates with condition number 1",
        ),
        "scales": Name("γ", Look(VERMILION, "D"), rule="Adam on γ"),
        "rotated_scales": Name(
            "p with γ = Q p",
            Look(OLIVE, "s"),
            "γ in random axes,\nκ of K",
            rule="Adam in random coordinates with the condition number of K",
        ),
        "singular_scales": Name(
            "p with γ = V p",
            Look(PURPLE, "v", DASHED),
            "γ in the axes of K,\nκ of K",
            rule="Adam in coordinates along the singular vectors of K",
        ),
        "scales long": Name(
            "γ, 20,000 steps",
            Look(VERMILION, "D", hollow=True),
            "γ,\n20,000 steps",
            rule="Adam on γ with 20,000 steps",
        ),
        "rotated_scales long": Name(
            "p with γ = Q p, 20,000 steps",
            Look(OLIVE, "s", hollow=True),
            "γ in random axes,\n20,000 steps",
            rule="Adam in random coordinates with the condition number of K, and 20,000 steps,",
        ),
        "scales by sgd": Name(
            "γ by SGD, 20,000 steps",
            Look(SKY, hollow=True),
            "γ by SGD,\n20,000 steps",
            "SGD on γ with 20,000 steps",
        ),
        "from_active": Name(
            "γ and shifts, ReLUs initially active",
            Look(BLUE, dashes=DASHED),
            "γ and shifts,\nfrom active ReLUs",
            "Adam on γ and all shifts with all ReLUs initially active",
        ),
        "from_zero": Name(
            "γ and shifts, from shifts of 0",
            Look(NAVY, "D", hollow=True),
            "γ and shifts,\nfrom shifts of 0",
            "Adam on γ and all shifts from shifts of 0",
        ),
        "from_zero at rates of from_active": Name(
            "γ and shifts from shifts of 0, learning rates as from active ReLUs",
            Look(NAVY, "D", DASHED, hollow=True),
            "from shifts of 0,\nequal rates",
            "Adam on γ and all shifts from shifts of 0 at the learning rates for active ReLUs",
        ),
    },
    "start": {"random": Name("randomly initialized", short="random"), "pretrained": "pre-trained"},
    "trained": {"all": "all parameters"},
    "layer": {
        "batch_norm": "BatchNorm",
        "layer_norm": "LayerNorm",
        "rms_norm": "RMSNorm",
        "batch_norm with biases": "BatchNorm with biases",
        "layer_norm with biases": "LayerNorm with biases",
        "rms_norm with biases": "RMSNorm with biases",
        ("layer_norm with biases", "rms_norm with biases"): "LayerNorm or RMSNorm with biases",
    },
    "solver": {"least_squares": "least squares", "least_squares+lu": "least squares + lu"},
    "distribution": {"torch_default": "torch default"},
}
"""Names and looks of values, by column. Later series are drawn on top, and are thin or dashed."""

SYMBOLS = {
    "d": "target width",
    "m": "width",
    "p": "fraction of nonzero weights",
    ("norm_finetuning", "d"): "number of channels",
    ("norm_finetuning", "L"): "number of layers",
}
"""What the symbols of rules are."""

CONDITIONS = {
    "m == d ** 2": "the width m is d²",
    "m == 2 * d ** 2": "the width m is 2 d²",
    "m <= d": "the width m is at most d",
    "p == 1": "no weight is zero",
    "p == 0.2": "20\N{NO-BREAK SPACE}% of the weights are nonzero",
    "p == 0.05": "5\N{NO-BREAK SPACE}% of the weights are nonzero",
    "d <= 10": "d is at most 10",
    "d == d.min()": "the target width d is the smallest",
    "d == d.max()": "the target width d is the largest",
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
