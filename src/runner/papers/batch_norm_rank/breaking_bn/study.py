"""Study `breaking_bn`: paper B, Section 4 and Appendices C, H and I, figures 5, 7, 10 and 13.

A convolutional network learns images with one of these methods:

- `batch_norm`: with batch normalization, from PyTorch's initialization;
- `batch_norm_asymmetric`: with batch normalization, from positive weights of the same variance;
- `batch_norm_no_mean`: with division by the root mean square, without mean subtraction;
- `vanilla`: without normalization;
- `vanilla_100x`: without normalization, at 100 times the learning rate of `vanilla`;
- `vanilla_random_pixels`: without normalization, on images of uniform random pixels with the labels
  of the data, at the learning rate of `vanilla`.

The learning rate of each other method is the fastest one of a grid. It is chosen on separate
replicates, the selection replicates (`selection.csv`). In one replicate, all methods start from the
same random draws and see the data in the same order. Networks are trained one after the other
because each one occupies the whole machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from runner.core.choices import lookup
from runner.core.studies import Context, Measured, network_name
from runner.data.datasets import Dataset, Images
from runner.networks.convolutional import ConvolutionalClassifier, initialize
from runner.networks.resnet import ResNet50
from runner.networks.vgg import VGG19
from runner.papers.batch_norm_rank.breaking_bn.alignment import gradient_alignment
from runner.papers.batch_norm_rank.breaking_bn.config import BreakingBN as Config
from runner.papers.batch_norm_rank.breaking_bn.rows import (
    TrainedEpoch,
    TrialEpoch,
    UntrainedNetwork,
)
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import ranks
from runner.training.images import ConvolutionalTrainer, Task, on_device, train_in_turn, trials

ARCHITECTURES = {"vgg19": VGG19, "resnet50": ResNet50}


@dataclass(frozen=True)
class Method:
    """A method: the network's normalization, initialization, learning rate and images.

    - faster: factor on the learning rate.
    - random_pixels: whether the images have random pixels.
    - rate_of: the method whose learning rate is used, multiplied by `faster`. If it is empty, the
      learning rate is chosen from the grid.
    """

    normalization: str
    init: str = "pytorch"
    faster: float = 1.0
    random_pixels: bool = False
    rate_of: str = ""


METHODS = {
    "batch_norm": Method("batch"),
    "batch_norm_asymmetric": Method("batch", init="asymmetric"),
    "batch_norm_no_mean": Method("batch_no_mean"),
    "vanilla": Method("none"),
    "vanilla_100x": Method("none", faster=100.0, rate_of="vanilla"),
    "vanilla_random_pixels": Method("none", random_pixels=True, rate_of="vanilla"),
}


def run(config: Config, context: Context) -> Iterator[UntrainedNetwork | TrialEpoch | Measured]:
    """Train the networks one after the other; yield the rows of the three tables.

    The replicates for trials only choose learning rates. Networks of all other replicates are also
    measured before training. They are handed to the user's function `measure`, if there is one,
    whose rows (`Measured`) are yielded, too. Raises InputError for an unknown method or
    architecture, or unavailable images.
    """
    rate_of = {name: lookup("methods", name, METHODS).rate_of or name for name in config.methods}
    judged = range(config.replicates)
    tasks = trials(config, dict.fromkeys(rate_of.values()))
    tasks += [Task(m, r, rate_of=rate_of[m]) for m in config.methods for r in judged]
    pixels = sorted({METHODS[task.method].random_pixels for task in tasks})
    data = {random: images(config, context, random) for random in pixels}
    first = data[pixels[0]].train
    epochs = train_in_turn(config, context, tasks, partial(start, config, data), len(first))
    for task, trainer, columns in epochs:
        (method, replicate, *_), epoch = task, columns["epoch"]
        measured = measure(config, trainer)
        if epoch == 0:
            parameters = sum(p.numel() for p in trainer.network.parameters())
            yield UntrainedNetwork(method, replicate, parameters, **measured)
        else:
            columns |= {"steps": trainer.done, "rank": measured["matrix_rank"]}
            columns |= {name: measured[name] for name in ("rank_bound", "gradient_alignment")}
            yield (TrainedEpoch if replicate in judged else TrialEpoch)(method, **columns)
        if replicate in judged:
            size = {"architecture": config.architecture, "multiplier": config.multiplier}
            now = partial(traced, config, trainer)
            yield from context.hand_over(network_name(method, **size), replicate, epoch, now)


def images(config: Config, context: Context, random_pixels: bool) -> Dataset:
    """Return the study's images on the device, each channel with mean zero and variance one.

    random_pixels: whether to replace the pixels by random pixels. Raises InputError if the images
    are unavailable or if there are fewer than `samples` training images.
    """
    data = training_images(config, context)
    probed(config, data)  # raises an error now, not when networks are measured
    if config.image_size is not None:
        data = data.resized(config.image_size)
    if random_pixels:
        data = data.with_random_pixels(config.stream(0, "random pixels"))
    return on_device(data.standardized(), context.device)


def new_network(config: Config, name: str, channels: int, classes: int) -> ConvolutionalClassifier:
    """Return an uninitialized network of a method.

    name: the method's name, a key of METHODS. channels, classes: numbers of image channels and of
    outputs. Raises InputError for an unknown architecture.
    """
    architecture = lookup("architecture", config.architecture, ARCHITECTURES)
    return architecture(channels, classes, METHODS[name].normalization, config.multiplier)


def torch_module(config: Config, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module in evaluation mode.

    network: the network's name in `weights.safetensors`, which begins with its method. tensors: its
    stored tensors by name.
    """
    first = next(W for W in tensors.values() if W.ndim == 4)
    classes = len(tensors["classifier.weight"])
    module = new_network(config, network.partition("/")[0], first.shape[1], classes)
    module.load_state_dict(tensors)
    return module.eval()


def traced(config: Config, trainer: ConvolutionalTrainer) -> dict[str, Tensor]:
    """Return tensors by name: images `x` for measurements, weights, last representations `H`."""
    images = probed(config, trainer.data)
    H, _ = last_layer(trainer.network, images)
    return {"x": images.pixels, **trainer.network.state_dict(), "H": H}


def start(
    config: Config, data: Mapping[bool, Dataset], task: Task, rate: float
) -> ConvolutionalTrainer:
    """Return the trainer of a newly initialized network.

    data: the dataset with the real pixels (key False) and with random pixels (key True). task:
    method and replicate. rate: a learning rate of the grid, which is multiplied by the method's
    `faster`. Raises InputError for an unknown architecture.
    """
    method, replicate = METHODS[task.method], task.replicate
    method_data = data[method.random_pixels]
    network = new_network(
        config, task.method, method_data.train.pixels.shape[1], method_data.classes
    )
    initialize(network, method.init, config.stream(replicate, "initialisation"))
    network = network.to(method_data.train.labels.device, memory_format=torch.channels_last)
    rate *= method.faster
    return ConvolutionalTrainer(
        network, method_data, rate, config.batch_size, config.streams().generator, replicate
    )


@torch.no_grad()
def last_layer(
    network: ConvolutionalClassifier, on: Images
) -> tuple[Float[Tensor, "N d"], Float[Tensor, "N classes"]]:
    """Return the last hidden representations, and the errors `softmax - one-hot` of the logits.

    on: N images. Batch normalization uses the statistics of these images.
    """
    network.set_mode("probe")
    H = network.hidden(on.pixels)
    logits = network.classifier(H)
    labels: Int[Tensor, "N classes"] = functional.one_hot(on.labels, logits.shape[1])
    return H, logits.softmax(1) - labels


def measure(config: Config, trainer: ConvolutionalTrainer) -> dict[str, float]:
    """Return ranks and gradient alignment of the last hidden layer, on `samples` training images.

    The keys are columns of `UntrainedNetwork`.
    """
    H, errors = last_layer(trainer.network, probed(config, trainer.data))
    measured = ranks(H.mT[None], config.tau)
    values = {name: float(value[0]) for name, value in vars(measured).items()}
    return values | {"gradient_alignment": float(gradient_alignment(H, errors))}
