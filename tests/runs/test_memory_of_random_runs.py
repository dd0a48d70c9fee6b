"""The formulas of memory against measured peaks, for random runs of every study at 300 MB.

`MEMORY_SAMPLES=20 python -m pytest tests/runs/test_memory_of_random_runs.py` tries twenty of each.
"""

import os
import random
from typing import Any

import pytest
from compiled import compile_loops
from starved import starved

from runner.bench.growth import cost
from runner.core.catalogue import configs
from runner.runs import memory
from runner.runs.limits import STATM

SAMPLES = int(os.environ.get("MEMORY_SAMPLES", "1"))

FILLED = 300 * 10**6
"""Bytes that a run is enlarged to, by its formula."""

FEWEST = {
    "polish": 31,
    "replicates": 1,
    "epochs": 1,
    "steps": 2,
    "layers": 2,
    "burn_in": 0,
    "time": 0.2,
}
"""Run lengths that no memory depends on, where a study has them."""

CHOICES: dict[str, dict[str, list[Any]]] = {
    "bn_classifier": {
        "target_width": [8, 16],
        "learning_rates": [[0.01]],
        "batch_size": [64, 1437],
    },
    "bn_only": {
        "target_width": [10, 20],
        "widths": [None, [2000], [200, 100]],
        "sparsity": [1.0, 0.7],
        "methods": [["sgd"], ["dense"], ["sgd", "dense"], ["teacher_construction"]],
        "train_samples": [64, 600],
        "test_samples": [100, 3000],
        "batch_size": [64],
    },
    "constructions": {
        "theorem": ["wide", "low_rank", "deep"],
        "target_width": [10, 32, 48],
        "depth": [1, 2],
        "rank": [2, 3],
        "block": [4, 8],
    },
    "linear": {
        "depths": [[200], [20, 100]],
        "width": [20, 40],
        "ridges": [[0.1]],
        "iterations": [15],
    },
    "low_rank_training": {
        "architecture": ["mlp", "mlp", "conv"],
        "width": [16, 64, 128],
        "classes": [2],
        "samples": [20, 300],
        "minibatches": [1, 3],
        "optimizer": ["sgd", "adamw"],
        "gains": [[0.5], [0.5, 1.0]],
        "learning_rates": [[0.05]],
        "dtype": ["float32", "float64"],
    },
    "norm_layers": {
        "target_width": [5, 10, 30],
        "batch_sizes": [[16], [64, 1024]],
    },
    "rank_chain": {
        "measure": ["spectrum", "product", "input_rank"],
        "widths": [[64], [128]],
        "skips": [[1.0]],
        "samples": [None, 100],
        "stride": [1],
    },
    "rank_collapse": {
        "depth": [2, 8],
        "width": [32, 64],
        "data": ["digits"],
        "samples": [16, 512, 1400],
        "learning_rates": [[0.01], [0.01, 0.02, 0.03]],
        "batch_size": [64, 1024],
        "normalizations": [["none"], ["batch"], ["none", "batch"]],
        "dtype": ["float32", "float64"],
        "train": [True, True, False],
    },
    "pretraining": {
        "depth": [2, 6],
        "width": [32, 64],
        "samples": [16, 1000],
        "learning_rates": [[0.01], [0.01, 0.02, 0.03]],
        "batch_size": [64, 512],
        "methods": [["vanilla"], ["pretrained", "he"], ["batch_norm"], ["pretrained_end_to_end"]],
        "pretraining_steps": [[2], [2, 5]],
        "pretraining_batch_size": [64, 2000],
        "angles": [[0.05], [0.05, 0.1]],
        "all_angles": [True, False],
    },
    "breaking_bn": {
        "architecture": ["vgg19", "resnet50"],
        "multiplier": [0.05, 0.1],
        "methods": [["batch_norm"], ["batch_norm_no_mean"], ["vanilla"], ["vanilla_random_pixels"]],
        "learning_rates": [[0.01]],
        "batch_size": [256, 512],
        "samples": [16, 128],
    },
    "bottleneck": {
        "depths": [[3], [4, 6], [12]],
        "width": [30, 60],
        "samples": [100, 200],
        "test_samples": [100, 3000],
        "points": [5, 50],
        "replicates": [1, 3],
    },
    "symmetry": {
        "depth": [3, 8],
        "width": [50],
        "dimension": [3, 20],
        "starts": [100, 3000],
        "batch_size": [10, 200],
        "probes": [20, 300],
        "points": [5, 50],
        "resolution": [3, 31],
        "horizon": [2],
    },
    "rank_one": {
        "samples": [[4, 16], [8, 9, 32]],
        "depth": [6, 12],
        "width": [40, 80],
        "segment_points": [3, 9],
    },
    "example20": {"depths": [[8, 64], [500]], "exponents": [[0.8]], "grid": [6, 20]},
    "invariances": {
        "architecture": ["linear", "relu_then_linear", "conv", "residual_free", "mixed"],
        "depth": [6],
        "width": [16, 64],
        "channels": [8, 16],
        "data": ["gaussian"],
        "samples": [8, 32],
        "learning_rates": [[0.02]],
        "integrator": ["euler", "rk4"],
        "records": [1, 5],
    },
}

GROWN = {
    "bn_classifier": ["target_width"],
    "bn_only": ["replicates"],
    "constructions": ["points"],
    "linear": ["width", "depths"],
    "low_rank_training": ["replicates", "width"],
    "norm_layers": ["samples"],
    "rank_chain": ["chains"],
    "rank_collapse": ["replicates"],
    "pretraining": ["replicates", "pretraining_batch_size"],
    "breaking_bn": ["image_size"],
    "bottleneck": ["test_samples", "width"],
    "symmetry": ["probes", "width"],
    "rank_one": ["width", "replicates"],
    "example20": ["grid", "depths"],
    "invariances": ["replicates", "samples"],
}
"""Parameters of which one is enlarged until the memory is filled."""

SPARE = 120 * 2**20
"""Bytes of addresses that a starved run has beside those of the program."""


def draw(study: str, seed: int):
    """A random configuration of the study that takes `FILLED` bytes, by its formula."""
    stream = random.Random(f"{study}/{seed}")
    config = configs()[study]
    fewest = {name: value for name, value in FEWEST.items() if hasattr(config(), name)}
    chosen = {name: stream.choice(values) for name, values in CHOICES[study].items()}
    small = config(**{**fewest, **chosen})
    sizes = {name: memory.largest(small, name, FILLED) for name in GROWN[study]}
    name = stream.choice([name for name, size in sizes.items() if size is not None])
    return memory.resized(small, name, sizes[name])


def test_random_runs_are_drawn_for_every_study():
    assert set(CHOICES) == set(GROWN) == set(configs())


@pytest.fixture(scope="module", autouse=True)
def compiled_before():
    compile_loops()


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
@pytest.mark.parametrize("seed", range(SAMPLES))
@pytest.mark.parametrize("study", CHOICES)
def test_the_formula_is_never_below_the_peak_by_more_than_a_fifth(study, seed):
    """Nor more than twice as high: what is refused would not fit."""
    config = draw(study, seed)
    measured, formula = cost(config).bytes, memory.needed(config)
    assert 0.8 * measured <= formula <= 2 * measured, config.identity()


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
@pytest.mark.parametrize("study", CHOICES)
def test_a_run_out_of_memory_ends_in_a_line_with_what_would_fit(study, tmp_path):
    config = draw(study, 0)
    kind, message = starved(config, tmp_path, SPARE)
    assert kind == "InputError", message
    assert f"study={study} ran out of memory on cpu" in message
    assert "would take half" in message and "\n" not in message
