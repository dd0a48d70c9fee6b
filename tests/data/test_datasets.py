import gzip
import hashlib
import io
import struct
import tarfile
from functools import partial

import pytest
import torch

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.data.batches import epoch_order
from runner.data.cifar import FOLDER, RECORD, TEST, TRAIN
from runner.data.datasets import Dataset, Images, load, random_pixels

IDX_NAMES = ["train-images.gz", "train-labels.gz", "test-images.gz", "test-labels.gz"]
NOWHERE = "http://127.0.0.1:9/"  # the discard port: refuses connections


def idx(values: torch.Tensor) -> bytes:
    header = struct.pack(">BBBB", 0, 0, 8, values.ndim)
    header += struct.pack(f">{values.ndim}I", *values.shape)
    return gzip.compress(header + values.to(torch.uint8).numpy().tobytes())


def source_of(folder, contents: dict[str, bytes], checksums: list[str]) -> dict:
    """Write the files and describe them; `read` takes the checksums of what they hold."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    files = [
        {"name": name, "checksum": f"sha256:{sha256(each)}"} for name, each in contents.items()
    ]
    return {"url": NOWHERE, "files": files, "checksums": checksums}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def decompressed(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        return content


def read(name: str, source: dict, folder) -> Dataset:
    return load(name, source, folder, 0, source["checksums"])


def random_bytes(*shape: int, below: int = 256) -> torch.Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(0))


def fashion(folder, **replaced: bytes) -> dict:
    images, labels = random_bytes(6, 5, 4), torch.tensor([0, 9, 3, 3, 1, 2])
    contents = dict(zip(IDX_NAMES, map(idx, (images, labels, images[:2], labels[:2])), strict=True))
    names = {name.replace("-", "_").removesuffix(".gz"): name for name in IDX_NAMES}
    contents |= {names[name]: content for name, content in replaced.items()}
    return source_of(folder, contents, [sha256(decompressed(c)) for c in contents.values()])


def archive(members: dict[str, bytes], link: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if name == link:
                entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def batches(**changed: bytes) -> dict[str, bytes]:
    records = random_bytes(len(TRAIN + TEST), 3, RECORD)
    records[..., 0] %= 10
    whole = {
        name: bytes(each.flatten().tolist())
        for name, each in zip(TRAIN + TEST, records, strict=True)
    }
    return whole | ({TRAIN[0]: changed["content"]} if changed else {})


def cifar(folder, link: str | None = None, **changed: bytes) -> dict:
    members = {f"{FOLDER}/{name}": content for name, content in batches(**changed).items()}
    content = archive(members, link)
    return source_of(folder, {"cifar.tar.gz": content}, [sha256(c) for c in members.values()])


def test_idx_files_are_read(tmp_path):
    data = read("fashion_mnist", fashion(tmp_path), tmp_path)
    assert data.train.pixels.shape == (6, 1, 5, 4)
    assert data.test.pixels.shape == (2, 1, 5, 4)
    assert torch.equal(data.train.pixels[:, 0] * 255, random_bytes(6, 5, 4).float())
    assert data.train.labels.tolist() == [0, 9, 3, 3, 1, 2]
    assert data.classes == 10


def test_cifar_records_are_read(tmp_path):
    data = read("cifar10", cifar(tmp_path), tmp_path)
    records = random_bytes(len(TRAIN + TEST), 3, RECORD)
    assert data.train.pixels.shape == (15, 3, 32, 32)
    assert data.test.labels.tolist() == (records[-1, :, 0] % 10).tolist()
    pixel = records[4, 2, 1 + 2 * 1024 + 7 * 32 + 11]  # record 14: blue, row 7, column 11
    assert data.train.pixels[14, 2, 7, 11] == pixel / 255


def labels(count: int, *values: int) -> bytes:
    """A file of labels that promises `count` of them."""
    return gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(values))


HUGE = gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, *[2**32 - 1] * 3))
DAMAGES = [
    ("train_images", idx(random_bytes(6, 20)), "train-images.gz has the magic number 00000802"),
    ("train_images", idx(random_bytes(6, 5, 4))[:40], "train-images.gz is damaged"),
    ("train_images", b"not IDX", "train-images.gz has the magic number 6e6f7420"),
    ("train_images", idx(torch.empty(0, 5, 4)), "train-images.gz is empty: 0 x 5 x 4 bytes"),
    ("train_labels", idx(torch.arange(5)), "holds 6 images but .*train-labels.gz 5 labels"),
    ("train_labels", idx(torch.empty(0)), "train-labels.gz is empty: 0 bytes"),
    ("test_labels", labels(2, 1), "test-labels.gz should have 2 bytes of data, but has fewer"),
    ("test_labels", labels(2, 1, 2, 3), "test-labels.gz should have 2 bytes of data, but has more"),
    ("test_labels", labels(2, 0, 10), "test-labels.gz holds the label 10"),
    ("test_images", HUGE, "test-images.gz should have 4294967295 x 4294967295 x 4294967295 bytes"),
    ("test_images", idx(random_bytes(2, 4, 5)), "5 x 4 pixels but .*test-images.gz of 4 x 5"),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGES, ids=[d[2] for d in DAMAGES])
def test_a_damaged_idx_file_is_refused_by_name(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read("fashion_mnist", fashion(tmp_path, **{name: content}), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"content": b"\0" * (RECORD - 1)}, "data_batch_1.bin holds 3072 bytes, not whole records"),
        ({"content": b""}, "data_batch_1.bin holds 0 bytes"),
        ({"content": b"\x0b" * RECORD}, "data_batch_1.bin holds the label 11"),
        ({"link": f"{FOLDER}/{TEST[0]}"}, "test_batch.bin is not a file"),
        (lambda whole: whole[:2000], "cifar.tar.gz is damaged"),
        (lambda whole: archive({"README": b""}), f"gz has no {FOLDER}/data_batch_1.bin"),
    ],
)
def test_a_damaged_cifar_archive_is_refused_by_name(tmp_path, change, message):
    source = cifar(tmp_path, **({} if callable(change) else change))
    path = tmp_path / "cifar.tar.gz"
    path.write_bytes(change(path.read_bytes()) if callable(change) else path.read_bytes())
    with pytest.raises(InputError, match=message):
        read("cifar10", source, tmp_path)


def test_files_are_known_by_their_content_alone(tmp_path):
    """Compressed anew, not at all, or under the other name: the same dataset."""
    source = fashion(tmp_path)
    data = read("fashion_mnist", source, tmp_path)
    plain = tmp_path / "plain"
    plain.mkdir()
    for number, name in enumerate(IDX_NAMES):
        content = decompressed((tmp_path / name).read_bytes())
        if number == 0:
            (plain / name).write_bytes(gzip.compress(content, 1, mtime=7))
        elif number == 1:
            (plain / name).write_bytes(content)
        else:
            (plain / name.removesuffix(".gz")).write_bytes(content)
    again = read("fashion_mnist", source, plain)
    assert torch.equal(again.train.pixels, data.train.pixels)
    assert torch.equal(again.test.labels, data.test.labels)
    assert list(again.files.values()) == list(data.files.values()) == source["checksums"]
    packaged = read("fashion_mnist", source | {"packages": [str(tmp_path)]}, plain)
    assert list(packaged.files)[1:2] == [str(plain / IDX_NAMES[1])], "one's own go before"
    (plain / IDX_NAMES[1]).unlink()
    packaged = read("fashion_mnist", source | {"packages": [str(tmp_path)]}, plain)
    assert list(packaged.files)[1:2] == [str(tmp_path / IDX_NAMES[1])], "of the system"


@pytest.mark.parametrize("named", [FOLDER, "."])
def test_cifar_is_read_from_what_its_archive_unpacks_to(tmp_path, named):
    source = cifar(tmp_path)
    data = read("cifar10", source, tmp_path)
    unpacked = tmp_path / "elsewhere" / named
    unpacked.mkdir(parents=True)
    for name, content in batches().items():
        (unpacked / name).write_bytes(content)
    again = read("cifar10", source, tmp_path / "elsewhere")
    assert torch.equal(again.train.pixels, data.train.pixels)
    assert list(again.files.values()) == list(data.files.values()) == source["checksums"]


def test_files_without_checksums_and_checksums_without_files_are_refused(tmp_path):
    source = fashion(tmp_path)
    with pytest.raises(InputError, match="checksums=null: conf/data/fashion_mnist.yaml"):
        load("fashion_mnist", source, tmp_path, seed=0)
    with pytest.raises(InputError, match="checksums has 1 entries, but fashion_mnist has 4 files"):
        load("fashion_mnist", source, tmp_path, seed=0, checksums=["a"])
    with pytest.raises(InputError, match="data=digits has no files"):
        load("digits", {}, None, seed=0, checksums=["a"])


def test_the_digits_are_split_once_and_for_all():
    data = load("digits", {}, None, seed=0)
    assert (len(data.train), len(data.test)) == (1536, 261)
    assert data.train.pixels.shape[1:] == (1, 8, 8)
    assert (data.train.pixels.min(), data.train.pixels.max()) == (0, 1)
    assert torch.equal(load("digits", {}, None, seed=1).test.pixels, data.test.pixels)
    shares = data.train.labels.bincount() / len(data.train)
    torch.testing.assert_close(shares, data.test.labels.bincount() / 261, atol=5e-3, rtol=0)


def test_other_digits_of_scikit_learn_are_refused(monkeypatch):
    monkeypatch.setattr("runner.data.digits.CHECKSUM", "0" * 64)
    with pytest.raises(InputError, match="scikit-learn's digits have the SHA-256 87ff0c9e"):
        load("digits", {}, None, seed=0)


def test_the_first_images_are_those_of_the_datasets_own_order():
    data = load("digits", {}, None, seed=0)
    first = data.reduced(100, torch.Generator)
    assert torch.equal(first.train.pixels, data.train.pixels[:100])
    assert torch.equal(first.train.labels, data.train.labels[:100])
    assert torch.equal(first.test.pixels, data.test.pixels) and first.classes == 10
    assert first.train.pixels.untyped_storage().nbytes() == 100 * 64 * 4  # the others are let go
    assert data.reduced(None, torch.Generator) is data
    with pytest.raises(InputError, match="train_images=1537: digits has 1536 training images"):
        data.reduced(1537, torch.Generator)


def test_of_a_users_file_a_subset_has_equal_shares_of_the_classes():
    labels = torch.arange(4).repeat_interleave(torch.tensor([3, 40, 40, 40]))
    pixels = torch.arange(float(len(labels)))[:, None, None, None]
    data = Dataset("a.npz", Images(pixels, labels), Images(pixels, labels), 4, is_own=True)
    drawn = [data.reduced(62, lambda s=s: generator(s, 0, "subset")).train for s in (0, 0, 1)]
    assert sorted(drawn[0].labels.bincount().tolist()) == [3, 19, 20, 20]
    assert torch.equal(labels[drawn[0].flat()[:, 0].long()], drawn[0].labels), "with its label"
    assert torch.equal(drawn[0].pixels, drawn[1].pixels)
    assert not torch.equal(drawn[0].pixels, drawn[2].pixels)
    assert len(drawn[0].flat().unique()) == 62
    assert data.reduced(10, lambda: generator(3, 0, "subset")).train.labels.bincount().min() >= 2


@pytest.mark.parametrize(("grey", "count"), [(0, 1), (77, 6), (255, 200)])
def test_standardized_pixels_have_the_deviation_one_and_constant_channels_become_zero(grey, count):
    """By the statistics of the training images, resized or not."""
    pixels = random_bytes(count, 2, 5, 4).float() / 255
    pixels[:, 1] = torch.tensor(grey / 255)
    train, test = Images(pixels, torch.zeros(count).long()), random_bytes(3, 2, 5, 4).float()
    data = Dataset("any", train, Images(test, torch.zeros(3).long()), 10)
    for each in (data, data.resized(7)):
        found = each.standardized()
        for part in (found.train, found.test):
            assert (part.pixels[:, 1] == 0).all()
        mean, deviation = (f(each.train.pixels[:, 0]) for f in (torch.mean, torch.std))
        expected = (each.test.pixels[:, 0] - mean) / deviation
        torch.testing.assert_close(found.test.pixels[:, 0], expected)


def test_random_pixels_keep_the_labels_and_nothing_else():
    data = load("digits", {}, None, seed=0)
    random = data.with_random_pixels(torch.Generator().manual_seed(0))
    assert torch.equal(random.train.labels, data.train.labels)
    flat = random.train.flat()
    assert abs(flat.mean() - 1 / 2) < 0.01 and abs(flat.var() - 1 / 12) < 0.01
    small = random_pixels(seed=3, train=50, test=20)
    assert small.train.flat().shape == (50, 784) and small.classes == 10
    assert torch.equal(small.train.pixels, random_pixels(3, 50, 20).train.pixels)
    assert not torch.equal(small.train.pixels, random_pixels(4, 50, 20).train.pixels)


def test_each_replicate_and_epoch_has_its_own_order():
    order = epoch_order(partial(generator, 0), 3, 40, epoch=1)
    assert torch.equal(order.sort().values, torch.arange(40).expand(3, 40))
    assert not torch.equal(order[0], order[1])
    assert not torch.equal(order, epoch_order(partial(generator, 0), 3, 40, epoch=2))
    assert torch.equal(order[:1], epoch_order(partial(generator, 0), 1, 40, epoch=1))
