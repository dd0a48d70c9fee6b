"""The dataset on the command line: by name, its folder, and what is said when it is absent."""


def test_absent_files_end_the_command_with_two_lines_that_say_where_to_put_them(command, tmp_path):
    done = command(
        "study=rank_collapse", "scale=smoke", "depth=1", "data=fashion_mnist",
        "source.url=http://127.0.0.1:9/", "source.packages=[]",
        f"data_folder={tmp_path / 'here'}",
    )  # fmt: skip
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("starts")]
    assert len(lines) == 2 and "train-images-idx3-ubyte.gz" in lines[0]
    assert str(tmp_path / "here") in lines[1]


def test_an_unknown_dataset_is_answered_with_the_nearest(command):
    done = command("study=rank_collapse", "data=cifar")
    assert done.returncode == 2
    assert "data=cifar is not known: did you mean 'cifar10'?" in done.stderr


def test_a_labelled_dataset_is_needed_for_training(command):
    done = command("study=rank_collapse", "data=gaussian")
    assert done.returncode == 2 and "add train=false" in done.stderr
    assert "data=gaussian is not known" in command("study=pretraining", "data=gaussian").stderr


def test_the_designs_example_draws_ranks_and_curves(command, tmp_path):
    done = command("study=rank_collapse", "depth=2", "scale=smoke")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs" / "rank_collapse").iterdir()
    assert {"metrics.csv", "training.csv", "overview.png"} <= {f.name for f in folder.iterdir()}
    assert "batch" in done.stdout and "train_accuracy" in done.stdout


def test_a_study_that_reads_no_files_says_which_data_it_takes(command):
    done = command("study=invariances", "data=cifar10")
    assert done.returncode == 2
    assert "study=invariances reads no files: data=gaussian or data=digits" in done.stderr


def test_other_files_under_an_official_name_end_the_command_with_two_lines(command, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (folder / f"{name}-ubyte").write_bytes(b"another dataset")
    done = command(
        "study=rank_collapse", "scale=smoke", "depth=1", "data=fashion_mnist",
        f"data_folder={folder}",
    )  # fmt: skip
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("starts")]
    assert len(lines) == 2 and str(folder / "train-images-idx3-ubyte") in lines[0]
    assert "expected c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888" in lines[0]
