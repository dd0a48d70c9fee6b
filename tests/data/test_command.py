"""The dataset on the command line: by name, its folder, and what is said when it is absent."""


def test_absent_files_end_the_command_with_two_lines_that_say_where_to_put_them(command, tmp_path):
    done = command(
        "study=rank_collapse", "scale=smoke", "depth=1", "data=fashion_mnist",
        "source.url=http://127.0.0.1:9/", f"data_folder={tmp_path / 'here'}",
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
