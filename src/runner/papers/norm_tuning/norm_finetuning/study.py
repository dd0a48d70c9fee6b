"""Study `norm_finetuning`: training only the normalization layers of a ResNet.

The theorems of paper A set gamma and beta; in practice they are trained (Frankle, Schwab, Morcos
2021; paper A, Sections 1 and 5). A ResNet of 6n + 2 layers has random and frozen weights. Only one
part, an arm, is trained:

- `norm`: gamma and beta of all BatchNorm layers.
- `random_weights`: two random weights of each channel of each convolution, as many numbers as in
  `norm` (Frankle et al., Section 4).
- `last_layer`: the linear classifier.
- `all`: all parameters.

With `start=pretrained` all parameters are first trained on the lower half of the classes. Then each
arm learns the upper half, and also trains a new classifier. Two more arms are possible:

- `biases`: beta only (BitFit, Ben Zaken et al. 2022; the convolutions have no biases).
- `low_rank`: a product of rank one, added to the center of each kernel (LoRA, Hu et al. 2022). It
  has inputs plus outputs of numbers for each convolution, about as many as `norm`.

All arms use plain SGD and equally many epochs. The learning rate of an arm is the best of a grid on
separate replicates (`selection.csv`). All networks of a replicate have the same initial weights and
see the images in the same order.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.core.streams import SUBSET
from runner.core.studies import Context, Measured, network_name
from runner.data.datasets import Dataset, Images
from runner.networks.convolutional import initialize
from runner.networks.initialization import pytorch
from runner.networks.resnet import ResNetForCifar
from runner.papers.norm_tuning.norm_finetuning.config import NormFinetuning as Config
from runner.papers.norm_tuning.norm_finetuning.rows import Size, TrainedEpoch, TrialEpoch
from runner.training.images import (
    ConvolutionalTrainer,
    Task,
    on_device,
    train_in_turn,
    trials,
)

PRETRAINING = "pretraining"
"""Arm that learns the first half of the classes."""

STARTS = {"random": (), "pretrained": (PRETRAINING,)}
"""Trainings that precede the arms, by initialization."""

TRAINED = {"norm": ("scale", "shift"), "biases": ("shift",)}
TRAINED |= dict.fromkeys(("all", PRETRAINING), ("weight", "bias", "scale", "shift"))
TRAINED |= dict.fromkeys(("random_weights", "last_layer", "low_rank"), ())
"""Names of the parameters that an arm trains completely."""


def run(config: Config, context: Context) -> Iterator[Size | TrialEpoch | Measured]:
    """Train all networks one after the other, and yield the rows.

    The networks of pre-training, if any, are trained first. Then come the trials of all learning
    rates, then the networks at the chosen rates. Checkpoints also contain the pre-trained networks.
    """
    images, judged = halves(config, context), range(config.replicates)
    learned = {n: t for n, t in (context.restored or {}).items() if n.startswith(PRETRAINING)}
    lent = replace(context, checkpoint=lambda state: context.checkpoint(lambda: state() | learned))
    replicates = range(config.replicates + config.selection_replicates)
    first = lookup("start", config.start, STARTS)
    tasks = [Task(method, r, config.pretraining_rate) for method in first for r in replicates]
    tasks += trials(config, config.arms, config.selection_epochs)
    tasks += [Task(arm, r) for arm in config.arms for r in judged]
    started = partial(start, config, images, learned)
    epochs = train_in_turn(config, lent, tasks, started, len(images[1].train))
    for task, trainer, columns in epochs:
        arm, replicate, epoch = task.method, task.replicate, columns["epoch"]
        if arm == PRETRAINING and epoch == config.epochs:
            features = trainer.network.features.state_dict(prefix=f"{PRETRAINING}/{replicate}/")
            learned |= {name: tensor.clone() for name, tensor in features.items()}
        if epoch == 0:
            yield size_of(task, trainer.network)
        elif replicate in judged:
            yield TrainedEpoch(arm, **columns)
        elif arm != PRETRAINING:
            yield TrialEpoch(arm, **columns)
        if replicate in judged:
            name = network_name(arm, width=config.width, blocks=config.blocks)
            yield from context.hand_over(name, replicate, epoch, partial(traced, trainer))


Halves = tuple[Dataset, Dataset]
"""Images of the classes that are learned first, and of the classes that are learned second."""


def halves(config: Config, context: Context) -> Halves:
    """Return the images of the first and of the second half of the classes, on the device.

    If the frozen weights are random, both datasets have all images. Each channel has mean zero and
    variance one over the training images. Raises InputError if the images cannot be read.
    """
    data = context.load_data(config.data, config.seed, config.checksums)
    data = data.reduced(config.train_images, partial(config.stream, 0, SUBSET))
    data = on_device(data.standardized(), context.device)
    if config.start == "random":
        return data, data
    half = data.classes // 2
    return of_classes(data, range(half)), of_classes(data, range(half, data.classes))


def of_classes(data: Dataset, classes: range) -> Dataset:
    """Return a dataset with only the images of some classes; their labels then count from 0.

    classes: consecutive classes. Raises InputError if there are no images of these classes.
    """

    def part(images: Images) -> Images:
        """Return the images of these classes, relabeled."""
        chosen = (images.labels >= classes.start) & (images.labels < classes.stop)
        if not chosen.any():
            raise InputError(f"{data.name} has no images of the classes {[*classes]}")
        return Images(images.pixels[chosen], images.labels[chosen] - classes.start)

    return replace(data, train=part(data.train), test=part(data.test), classes=len(classes))


def start(
    config: Config, images: Halves, learned: dict[str, Tensor], task: Task, rate: float
) -> ConvolutionalTrainer:
    """Return the trainer of one network, in which one part is trained, at its initial weights.

    - images: datasets of both halves of the classes.
    - learned: tensors of all pre-trained networks, by replicate and name.
    - task: the trained part, and the replicate.
    - rate: the learning rate.
    """
    data = images[task.method != PRETRAINING]
    replicate = task.replicate
    network = ResNetForCifar(data.train.pixels.shape[1], data.classes, config.blocks, config.width)
    initialize(network, "pytorch", config.stream(replicate, "initialisation"))
    network = network.to(data.train.labels.device, memory_format=torch.channels_last)
    prefix = f"{PRETRAINING}/{replicate}/"
    features = {n.removeprefix(prefix): t for n, t in learned.items() if n.startswith(prefix)}
    if features:
        network.features.load_state_dict(features)
    choice = config.stream(replicate, "trained weights")
    freeze_but(network, task.method, config.start == "pretrained", choice)
    return ConvolutionalTrainer(
        network, data, rate, config.batch_size, config.streams().generator, replicate
    )


def freeze_but(
    network: ResNetForCifar, arm: str, with_classifier: bool, stream: Generator
) -> ResNetForCifar:
    """Freeze all parameters of a network in place, except for one part; return the network.

    - arm: the part that is trained, as `norm` or `last_layer`.
    - with_classifier: whether the classifier is trained, too.
    - stream: draws which weights are trained, and the low-rank factors.

    Raises InputError for an unknown part.
    """
    parts = lookup("arms", arm, TRAINED)
    for name, parameter in network.named_parameters():
        is_last = name.startswith("classifier") and (with_classifier or arm == "last_layer")
        parameter.requires_grad_(is_last or name.rpartition(".")[2] in parts)
        if arm == "random_weights" and parameter.ndim == 4:
            train_two_of_each_channel(parameter.requires_grad_(True), stream)
    return with_low_rank(network, stream) if arm == "low_rank" else network


def train_two_of_each_channel(W: nn.Parameter, stream: Generator) -> None:
    """Let training change only two random weights of each output channel of a convolution.

    The gradient of all other weights is set to zero. W: the kernel, with the output channels as
    first axis. stream: chooses the weights.
    """
    scores = torch.rand(len(W), W[0].numel(), generator=stream)
    chosen = torch.zeros_like(scores).scatter_(1, scores.topk(2).indices, 1.0).view_as(W).to(W)
    W.register_hook(lambda gradient: gradient * chosen)


class LowRank(nn.Module):
    """A module that adds a trained matrix of rank one to the center of a convolution's kernel W.

    W: the kernel, which decides the shapes. stream: draws one factor of the matrix; the other
    factor is zero at first.

    The matrix is added to the kernel, because a second convolution would have a single output
    channel. oneDNN's convolutions to one channel crash on processors without AVX-512.
    """

    def __init__(self, W: Tensor, stream: Generator | None = None) -> None:
        super().__init__()
        n_out, n_in = W.shape[:2]
        down, _ = pytorch(1, n_in, stream or Generator())
        self.down = nn.Parameter(down.to(W))
        self.up = nn.Parameter(W.new_zeros(n_out, 1))

    def forward(self, W: Tensor) -> Tensor:
        """Return the kernel (out, in, rows, columns) plus the matrix of rank one at its center."""
        added = (self.up @ self.down)[:, :, None, None]
        half = W.shape[-1] // 2
        return W + nn.functional.pad(added, [half] * 4)


def with_low_rank(network: ResNetForCifar, stream: Generator | None = None) -> ResNetForCifar:
    """Add a trained matrix of rank one to each convolution of a network, in place.

    The matrices are zero at first and are added at the center of the kernels. stream: draws one
    factor of each matrix. Returns the network.
    """
    for module in list(network.modules()):
        if isinstance(module, nn.Conv2d):
            W = module.weight
            register_parametrization(module, "weight", LowRank(W, stream))
    return network


def size_of(task: Task, network: nn.Module) -> Size:
    """Return the row with the numbers of trained and of all parameters of a network.

    task: the trained part, and the replicate.
    """
    few = task.method == "random_weights"
    trained = sum(
        2 * len(p) if few and p.ndim == 4 else p.numel()
        for p in network.parameters()
        if p.requires_grad
    )
    return Size(task.method, task.replicate, trained, sum(p.numel() for p in network.parameters()))


def traced(trainer: ConvolutionalTrainer) -> dict[str, Tensor]:
    """Return by name a network's tensors, some test images x, and their last hidden layer H.

    x has the first 512 test images. The network is set to evaluation mode.
    """
    images = trainer.data.test.pixels[:512]
    trainer.network.set_mode("evaluate")
    with torch.no_grad():
        H = trainer.network.hidden(images)
    return {"x": images, **trainer.network.state_dict(), "H": H}


def torch_module(config: Config, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module in evaluation mode.

    network: the name of the network in `weights.safetensors`. tensors: its weights by name.
    """
    channels = next(W for W in tensors.values() if W.ndim == 4).shape[1]
    classes = len(tensors["classifier.weight"])
    module = ResNetForCifar(channels, classes, config.blocks, config.width)
    if network.startswith("low_rank"):
        with_low_rank(module)
    module.load_state_dict(tensors)
    return module.eval()
