"""Every study and method with `device=cuda:0` (see `pretended_cuda`), interrupted and gone on with.

All random numbers are drawn on the CPU, so that the tables are those of `device=cpu` but for
rounding.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import composed
from pretended_cuda import CUDA, pretended_cuda
from stopped import compute_with_stops

from runner.core.catalogue import configs
from runner.runs.run import Run


def test_what_cuda_refuses_is_refused():
    with pretended_cuda():
        x = torch.zeros(3, device=CUDA)
        refused = [
            (lambda: x + torch.zeros(3), "same device"),
            (lambda: torch.stack([x[0], torch.tensor(1.0)]), "same device"),
            (lambda: torch.zeros(3)[x.long()], "same device"),
            (lambda: x.numpy(), "to numpy"),
            (lambda: np.asarray(x), "to numpy"),
            (lambda: x.normal_(generator=torch.Generator()), "for generator"),
            (lambda: torch.randn(3, device=x.device, generator=torch.Generator()), "for generator"),
        ]
        for operation, message in refused:
            with pytest.raises((RuntimeError, TypeError), match=message):
                operation()


def test_what_cuda_allows_is_allowed():
    with pretended_cuda():
        x = torch.tensor([1.0, 2.0], device=CUDA).requires_grad_()
        assert x.is_cuda and x.device.type == "cuda" and not x.cpu().is_cuda
        (slope,) = torch.autograd.grad((x * torch.tensor(3.0)).square().sum(), x)
        assert slope.is_cuda and slope.tolist() == [18.0, 36.0]
        assert slope[torch.tensor([1])].cpu().numpy() == 36.0
        slope[:1] = -1.0
        assert torch.zeros(2).copy_(slope).tolist() == [-1.0, 36.0]
        with ThreadPoolExecutor() as pool:
            assert pool.submit(torch.ones(1).to, x.device).result().is_cuda
    assert not torch.cuda.is_available()


SMALLER = {
    "bn_classifier": "target_width=2 epochs=1 batch_size=1024 replicates=1",
    "bn_only": "target_width=3 train_samples=2000 test_samples=300 replicates=2",
    "bottleneck": "depths=[3] width=6 samples=10 steps=20 replicates=1",
    "breaking_bn": "image_size=4 train_images=32 batch_size=16 samples=16 learning_rates=[0.01]"
    " replicates=1",
    "invariances": "learning_rates=[0.1] replicates=2",
    "linear": "depths=[3] iterations=10",
    "low_rank_training": "epochs=2 samples=8",
    "pretraining": "depth=2 train_images=64 pretraining_steps=[2]",
    "rank_chain": "widths=[8] skips=[0.5] layers=80 chains=4 burn_in=20 draws=20",
    "rank_collapse": "train_images=128",
    "rank_one": "steps=20",
    "symmetry": "steps=10 polish=1",
}
"""What makes a run at scale smoke a matter of seconds."""


def choices(study: str, name: str) -> tuple[str, ...]:
    """All values that a parameter may have."""
    return {field.name: field.metadata["choices"] for field in fields(configs()[study])}[name]


def every(study: str, name: str) -> str:
    """The setting of a list that has them all."""
    return f"{name}=[{','.join(choices(study, name))}]"


def each(study: str, name: str, *more: str) -> list[str]:
    """A setting for each of them."""
    return [" ".join([f"{name}={value}", *more]) for value in choices(study, name)]


VARIANTS = {
    "bn_only": [every("bn_only", "methods"), "statistics=fixed optimizer=adam schedule=cosine"],
    "bottleneck": each("bottleneck", "recipe"),
    "breaking_bn": [every("breaking_bn", "methods"), "architecture=resnet50"],
    "constructions": each("constructions", "theorem"),
    "invariances": [
        *each("invariances", "architecture"),
        "data=digits integrator=rk4 normalized_time=true",
    ],
    "low_rank_training": [
        *each("low_rank_training", "optimizer"),
        "architecture=conv loss_function=cross_entropy classes=3 minibatches=2",
    ],
    "pretraining": [every("pretraining", "methods")],
    "rank_chain": [
        *each("rank_chain", "measure", "engine=rotated"),
        "engine=direct law=rademacher centred=true dtype=float32",
    ],
    "rank_collapse": [
        every("rank_collapse", "normalizations"),
        "skip=0.5 dtype=float64",
        "activation=linear train=false data=gaussian",
    ],
}
"""Settings in which each study does all that it can do; nothing where the defaults do it."""

RUNS = [(study, variant) for study in sorted(configs()) for variant in VARIANTS.get(study, [""])]


@pytest.mark.parametrize(("study", "variant"), RUNS)
def test_a_run_on_cuda_has_the_numbers_of_one_on_the_cpu(study, variant, tmp_path, monkeypatch):
    overrides = [f"study={study}", "scale=smoke", *SMALLER.get(study, "").split(), *variant.split()]
    _, config = composed(*overrides)
    on_cpu, on_cuda = (Run(config, tmp_path / name) for name in ("cpu", "cuda"))
    checkpoints = compute_with_stops(on_cpu, [], monkeypatch)
    stops = [(checkpoints + 1) // 2] if checkpoints else []
    with pretended_cuda():
        compute_with_stops(on_cuda, stops, monkeypatch, str(CUDA))
    assert (on_cuda.folder / "run.log").read_text().count("goes on") == len(stops)
    expected, tables = on_cpu.tables(), on_cuda.tables()
    assert tables.keys() == expected.keys()
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, expected[name], rtol=1e-5, atol=1e-9)
