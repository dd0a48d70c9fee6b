"""Every study and method with `device=cuda:0` (see `pretended_cuda`), interrupted and gone on with.

All random numbers are drawn on the CPU, so that the tables are those of `device=cpu` but for
rounding.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from bench.growth import lent
from pretended_cuda import CUDA, READS, pretended_cuda
from samples import samples
from stopped import compute_with_stops
from tiny import RUNS, named, tiny

from runner.core.catalogue import module_of, paper_folder
from runner.runs.run import Run


def test_what_cuda_refuses_is_refused():
    with pretended_cuda():
        x = torch.zeros(3, device=CUDA)
        READS.clear()
        for reading in (x[0].item, lambda: float(x.sum()), x.cpu, lambda: bool(x.any()), x.nonzero):
            reading()
        assert len(READS) == 5
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


def paper(study: str, *_: object) -> str | None:
    """The kind of a case; convolutional networks take longer than others."""
    return None if study == "breaking_bn" else paper_folder(study)


@pytest.mark.parametrize(("study", "changes"), samples(RUNS, paper), ids=named)
def test_a_run_on_cuda_has_the_numbers_of_one_on_the_cpu(study, changes, tmp_path, monkeypatch):
    config = tiny(study, **changes)
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


LONGER = [
    ("bn_only", {}, {"batch_size": 16}),
    ("bn_only", {"statistics": "fixed", "optimizer": "adam"}, {"batch_size": 16}),
    ("bottleneck", {}, {"steps": 16}),
    ("breaking_bn", {}, {"batch_size": 16}),
    ("invariances", {"normalized_time": True}, {"learning_rates": [0.25, 0.125]}),
    ("low_rank_training", {"optimizer": "adam"}, {"minibatches": 3}),
    ("pretraining", {"methods": ["pretrained"]}, {"pretraining_steps": [4]}),
    *(("rank_chain", {"engine": engine}, {"layers": 80}) for engine in ("direct", "rotated")),
    ("rank_collapse", {"normalizations": ["none", "batch", "batch_no_mean"]}, {"batch_size": 16}),
    ("rank_one", {}, {"steps": 16}),
    ("stability", {}, {"steps": 16, "descent_steps": 6}),
    ("symmetry", {}, {"steps": 16}),
]
"""Settings, and others in which as much is measured after more steps."""


@pytest.mark.parametrize(
    ("study", "changes", "longer"),
    samples(LONGER, paper),
    ids=named,
)
def test_a_step_never_waits_for_the_device(study, changes, longer):
    """The host reads numbers to measure, and not once more when there are more steps."""
    counts = []
    for config in (tiny(study, **changes), tiny(study, **changes | longer)):
        with pretended_cuda():
            READS.clear()
            assert list(module_of(study).run(config, lent(CUDA)))
        counts.append(len(READS))
    assert counts[0] == counts[1] > 0
