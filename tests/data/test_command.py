"""The dataset on the command line: by name, its folder, and what is said when it is absent."""

import pytest
from in_process import run

FASHION = ("study=rank_collapse", "scale=smoke", "depth=1", "data=fashion_mnist", "data_folder=.")
OFFLINE = ("source.url=http://127.0.0.1:9/", "source.packages=[]")
OTHERS = "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*FASHION, *OFFLINE), "train-images-idx3-ubyte.gz"),
        (FASHION, f"expected {OTHERS}"),
        (("study=rank_collapse", "data=cifar"), "data=cifar is unknown: did you mean 'cifar10'?"),
        (("study=rank_collapse", "data=gaussian"), "add train=false"),
        (("study=pretraining", "data=gaussian"), "data=gaussian is unknown"),
        (
            ("study=invariances", "data=cifar10"),
            "study=invariances reads no files: data=gaussian or data=digits",
        ),
    ],
)
def test_data_that_cannot_be_had_end_the_command_in_a_line_or_two(
    words, said, tmp_path, monkeypatch, capsys
):
    """Files that are absent; files of something else under the official names."""
    monkeypatch.chdir(tmp_path)
    if words == FASHION:
        for part in (
            "train-images-idx3",
            "train-labels-idx1",
            "t10k-images-idx3",
            "t10k-labels-idx1",
        ):
            (tmp_path / f"{part}-ubyte").write_bytes(b"another dataset")
    assert run(words, monkeypatch) == 2
    notes = ("about ", "part of it chooses ")  # of the time that the run would take
    lines = [line for line in capsys.readouterr().err.splitlines() if "starts" not in line]
    lines = [line for line in lines if not line.startswith(notes)]
    assert len(lines) <= 2 and said in lines[0] + lines[-1]
    assert "data_folder" not in "".join(words) or str(tmp_path) in "".join(lines)
