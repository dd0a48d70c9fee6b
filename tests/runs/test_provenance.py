"""What a run's provenance says of the device that computed it."""

import pytest
import torch
from pretended_cuda import CUDA, pretended_cuda

from runner.runs import provenance

PROPRIETARY = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""
OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build  (builder@host)
GCC version:  gcc version 12.3.0
"""


def versions_on(device):
    versions = provenance.describe(device)["versions"]
    return {name: versions[name] for name in ("cuda", "cudnn", "driver")}


def test_a_cpu_has_no_versions_of_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "version")
    provenance.DRIVER.write_text(PROPRIETARY)
    assert versions_on(torch.device("cpu")) == {"cuda": None, "cudnn": None, "driver": None}


@pytest.mark.parametrize(
    ("text", "driver"),
    [(PROPRIETARY, "535.129.03"), (OPEN, "570.86"), ("no version", None), (None, None)],
)
def test_a_gpu_names_cuda_cudnn_and_the_driver(text, driver, monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "version")
    if text is not None:
        provenance.DRIVER.write_text(text)
    with pretended_cuda():
        assert versions_on(CUDA) == {"cuda": "12.8", "cudnn": "91002", "driver": driver}
