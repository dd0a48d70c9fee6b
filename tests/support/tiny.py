"""Every study at sizes that take a moment, with settings that use all of its features."""

from dataclasses import fields

from runner.core.catalogue import configs, sizes
from runner.core.studies import StudyConfig
from runner.papers.norm_tuning.norm_active.config import OF_SCALES, OF_WEIGHTS, WITH_HIDDEN

TINY = {
    "annealing": {"depths": [4], "width": 4, "samples": 6, "test_samples": 5, "steps": 8},
    "bn_only": {"target_width": 2, "train_samples": 400, "test_samples": 60, "batch_size": 20},
    "bottleneck": {"depths": [4], "width": 4, "samples": 6, "test_samples": 5}
    | {"steps": 8, "ridge": 0.03},
    "breaking_bn": {"multiplier": 0.02, "image_size": 2, "samples": 8, "methods": ["batch_norm"]},
    "constructions": {"target_width": 3, "points": 5, "block": 2},
    "example20": {"depths": [8, 12], "exponents": [0.6, 0.8], "grid": 2},
    "fits_by_rank": {"samples": [4], "depth": 7, "width": 4, "steps": 8},
    "invariances": {"width": 4, "channels": 2, "samples": 4, "learning_rates": [0.5, 0.25]},
    "pretraining": {"depth": 6, "width": 4, "samples": 8, "learning_rates": [0.03]},
    "linear": {"depths": [2, 3], "width": 2, "rank": 1, "iterations": 5},
    "low_rank_training": {"width": 4, "channels": 2, "samples": 6, "epochs": 2},
    "norm_finetuning": {"width": 2, "learning_rates": [0.1], "batch_size": 16},
    "norm_active": {"target_width": 2, "steps": 5, "test_samples": 60, "batch_size": 20}
    | {"selection_replicates": 2, "learning_rates": [0.1, 0.2]},
    "norm_layers": {"target_width": 3, "batch_sizes": [4], "samples": 20},
    "practical_layers": {"width": 2, "samples": 16, "learning_rates": [0.5, 0.25]},
    "rank_chain": {"widths": [4, 6], "skips": [0.5, 1.0], "layers": 40, "chains": 4, "draws": 6},
    "rank_collapse": {"depth": 3, "width": 4, "samples": 8, "learning_rates": [0.03]},
    "rank_gradients": {"depths": [2, 3], "widths": [4], "samples": 6},
    "rank_or_size": {"depth": 3, "width": 4, "samples": 8, "ranks": [2], "sizes": [0.01]}
    | {"pretraining_steps": 2, "learning_rates": [0.03], "batch_size": 16},
    "rank_one": {"samples": [4], "depth": 7, "width": 4, "steps": 8, "segment_points": 3},
    "small_copies": {"width": 4, "channels": 2, "samples": 6, "depths": [2, 3], "steps": 2},
    "stability": {"depths": [4, 6], "rates": [0.1], "width": 4, "samples": 6, "steps": 8}
    | {"descent_steps": 3},
    "vgg_size": {"multiplier": 0.03, "image_size": 8, "samples": 8, "learning_rates": [0.03]},
    "symmetry": {"depth": 4, "width": 6, "dimension": 4, "horizon": 3}
    | {"starts": 20, "steps": 8, "ridge": 0.05},
}
"""Small parameters by study; a study that is not here has its sizes of scale smoke. The next lines
add parameters that several studies share."""
SHARED = {"points": 3, "replicates": 2, "epochs": 1, "batch_size": 32, "records": 2, "time": 1.0}
SHARED |= {"train_images": 64}
MORE = {
    "symmetry": {"batch_size": 5, "probes": 20, "resolution": 3},
    "pretraining": {"pretraining_steps": [2], "pretraining_batch_size": 8, "gradient_steps": 1},
    "breaking_bn": {"replicates": 1},
}


def tiny(study: str, **changes: object) -> StudyConfig:
    """Return a configuration of a study that takes a moment. changes: values of parameters."""
    known = {field.name for field in fields(configs()[study])}
    shared = {name: value for name, value in SHARED.items() if name in known}
    own = TINY[study] if study in TINY else sizes(study).get("smoke", {})
    return configs()[study](**{**shared, **own, **MORE.get(study, {}), **changes})


def choices(study: str, name: str) -> list[str]:
    """Return all values that a parameter may have."""
    found = {field.name: field.metadata["choices"] for field in fields(configs()[study])}
    return list(found[name])


def each(study: str, name: str, **more: object) -> list[dict[str, object]]:
    """Return a setting for each possible value of a parameter. more: further parameters of each."""
    return [{name: value, **more} for value in choices(study, name)]


CHOOSING = {"learning_rates": [0.03, 0.1], "selection_replicates": 1, "epochs": 2}

VARIANTS: dict[str, list[dict[str, object]]] = {
    "annealing": each("annealing", "recipe"),
    "bn_only": [
        {"methods": choices("bn_only", "methods"), "widths": [2, 4]},
        {"statistics": "fixed", "optimizer": "adam", "schedule": "cosine"},
        {"optimizer": "momentum", "epochs": 2},
    ],
    "bottleneck": [*each("bottleneck", "recipe"), {"depths": [5, 3]}],
    "breaking_bn": [
        {"methods": ["batch_norm_no_mean", "vanilla_random_pixels"]},
        {"architecture": "resnet50", **CHOOSING, "epochs": 1},
    ],
    "constructions": [
        {"theorem": "sparse", "sparsity": 0.5, "target_width": 4},
        *({"theorem": theorem} for theorem in ("wide", "low_rank", "deep")),
        {"distribution": "uniform"},
        {"target": "convolution"},
    ],
    "invariances": [
        *({"architecture": architecture} for architecture in ("linear", "dense_graph", "mixed")),
        {"architecture": "random_graph", "width": 2, "depth": 4},
        {"data": "digits", "integrator": "rk4", "normalized_time": True},
    ],
    "low_rank_training": [
        *({"optimizer": name, "weight_decays": [0.0, 0.1]} for name in ("momentum", "adamw")),
        {"architecture": "conv", "loss_function": "cross_entropy", "classes": 3, "minibatches": 2},
    ],
    "norm_finetuning": [
        {**CHOOSING, "replicates": 1},
        {"start": "pretrained", "arms": choices("norm_finetuning", "arms")},
    ],
    "norm_layers": [
        {},
        {"layers": choices("norm_layers", "layers"), "biases": True, "fit_steps": 2},
    ],
    "practical_layers": [
        {"optimizer": "momentum", "weight_decay": 0.1},
        {"optimizer": "adam"},
    ],
    "pretraining": [
        {"methods": choices("pretraining", "methods"), "pretraining_steps": [2, 3]},
        {
            "script": "fig4",
            "methods": choices("pretraining", "methods"),
            **CHOOSING,
            "learning_rates": [0.001, 0.01],
        },
        {"protocol": "text", "methods": choices("pretraining", "methods"), "steps": [0.01, 0.02]},
        {"protocol": "ours", "methods": ["pretrained", "scale_matched"], "steps": [0.1]},
    ],
    "rank_chain": [
        {"engine": "rotated", "burn_in": 5},
        {"measure": "input_rank", "engine": "rotated", "burn_in": 5},
        *({"measure": measure} for measure in ("spectrum", "product", "expansion")),
        {"engine": "direct", "law": "rademacher", "centred": True, "dtype": "float32"},
    ],
    "norm_active": [
        {"arms": list(OF_WEIGHTS + OF_SCALES), "ratio": 2, "shift_rates": [0.0, 0.1]},
        {"arms": list(WITH_HIDDEN), "shift_rates": [0.01, 0.1]},
        {"optimizer": "sgd", "schedule": "constant"},
    ],
    "symmetry": each("symmetry", "recipe"),
    "rank_collapse": [
        {"normalizations": choices("rank_collapse", "normalizations"), **CHOOSING},
        {"skip": 0.5, "dtype": "float64"},
        {"protocol": "authors", "batch_size": 16, "learning_rates": [0.03]},
        {"activation": "linear", "train": False, "data": "gaussian"},
    ],
    "rank_or_size": [{"families": choices("rank_or_size", "families"), **CHOOSING}],
    "rank_gradients": [
        {"normalizations": choices("rank_gradients", "normalizations"), "widths": [4, 8]},
        {"activation": "linear", "init": "orthogonal"},
    ],
}
"""Settings by study that together use all of its features; empty if the defaults do."""

RUNS = [(study, changes) for study in sorted(configs()) for changes in VARIANTS.get(study, [{}])]


def named(value: object) -> str:
    """Return a setting as part of a test's name."""
    return value if isinstance(value, str) else " ".join(f"{k}={v}" for k, v in value.items())
