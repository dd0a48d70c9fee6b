"""Study `vgg_size`: VGG-19 without batch norm, from layers of several sizes (paper B, Appendix H).

Appendix H says that VGG-19 cannot be trained without batch norm, because the gradients of all
images are parallel. These initializations separate this from the size of the activations:

- `vanilla`: PyTorch's, as in figure 10;
- `he`: He's weights and zero biases. The network is then homogeneous;
- `unit_scale`: the same weights, but every convolution is divided by a number, so that its output
  has root mean square 1 on `samples` images. In the last layer rank, r and the directions of all
  activations are those of `he`.

The learning rate of each method is the fastest one of a grid, and is chosen on separate replicates.
In one replicate `he` and `unit_scale` have the same random draws, and all methods see the images in
the same order.
"""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from runner.core.choices import lookup
from runner.core.studies import Context, Measured, network_name
from runner.data.datasets import Dataset, Images
from runner.networks.convolutional import initialize
from runner.networks.vgg import VGG19
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import ranks
from runner.papers.batch_norm_rank.vgg_size.config import VGGSize as Config
from runner.papers.batch_norm_rank.vgg_size.rows import TrainedEpoch, TrialEpoch, UntrainedNetwork
from runner.training.images import ConvolutionalTrainer, Task, on_device, train_in_turn, trials

INITS = {"vanilla": "pytorch", "he": "he", "unit_scale": "he"}


def run(config: Config, context: Context) -> Iterator[UntrainedNetwork | TrialEpoch | Measured]:
    """Train the networks one after the other; yield the rows of the three tables.

    Raises InputError for an unknown method or unavailable images.
    """
    data = images(config, context)
    judged = range(config.replicates)
    tasks = trials(config, config.methods)
    tasks += [Task(method, replicate) for method in config.methods for replicate in judged]
    start_of = partial(start, config, data)
    for task, trainer, columns in train_in_turn(config, context, tasks, start_of, len(data.train)):
        epoch, own = columns["epoch"], task.replicate in judged
        columns = {n: value for n, value in columns.items() if not n.startswith("test_")}
        if epoch == 0:
            measured = measure(trainer.network, probed(config, data))
            yield UntrainedNetwork(task.method, task.replicate, **measured)
        else:
            yield (TrainedEpoch if own else TrialEpoch)(task.method, **columns)
        if own:
            name = network_name(task.method, multiplier=config.multiplier)
            now = partial(traced, config, trainer)
            yield from context.hand_over(name, task.replicate, epoch, now)


def images(config: Config, context: Context) -> Dataset:
    """Return the images on the device, each channel with mean zero and variance one.

    Raises InputError if they are unavailable or if there are fewer than `samples` training images.
    """
    data = training_images(config, context)
    probed(config, data)  # raises an error now, not when networks are measured
    if config.image_size is not None:
        data = data.resized(config.image_size)
    return on_device(data.standardized(), context.device)


def torch_module(config: Config, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module in evaluation mode.

    network: the network's name in `weights.safetensors`. tensors: its stored tensors by name.
    """
    first = next(W for W in tensors.values() if W.ndim == 4)
    classes = len(tensors["classifier.weight"])
    module = VGG19(first.shape[1], classes, "none", config.multiplier)
    module.load_state_dict(tensors)
    return module.eval()


def traced(config: Config, trainer: ConvolutionalTrainer) -> dict[str, Tensor]:
    """Return tensors by name: images `x` for measurements, weights, last representations `H`."""
    x = probed(config, trainer.data).pixels
    with torch.no_grad():
        H = trainer.network.hidden(x)
    return {"x": x, **trainer.network.state_dict(), "H": H}


def start(config: Config, data: Dataset, task: Task, rate: float) -> ConvolutionalTrainer:
    """Return the trainer of a newly initialized network. Raises InputError for an unknown method.

    task: method and replicate. rate: the learning rate.
    """
    pixels = data.train.pixels
    network = VGG19(pixels.shape[1], data.classes, "none", config.multiplier)
    init = lookup("methods", task.method, INITS)
    initialize(network, init, config.stream(task.replicate, "initialisation"))
    network = network.to(pixels.device, memory_format=torch.channels_last)
    if task.method == "unit_scale":
        rescale(network, probed(config, data).pixels)
    return ConvolutionalTrainer(
        network, data, rate, config.batch_size, config.streams().generator, task.replicate
    )


@torch.no_grad()
def rescale(network: VGG19, x: Float[Tensor, "N channels height width"]) -> None:
    """Divide the weights of every convolution in place, so that its output has root mean square 1.

    The output is taken after the ReLU, on the images x. All biases must be zero. A layer whose
    output is zero does not change.
    """
    for layer in network.features:
        if isinstance(layer, nn.Conv2d):
            size = layer(x).relu().square().mean().sqrt()
            layer.weight /= size.where(size > 0, 1.0)
        x = layer(x)


def measure(network: VGG19, on: Images) -> dict[str, float]:
    """Return the measures of a network before training, by the columns of `UntrainedNetwork`."""
    H = network.hidden(on.pixels)
    functional.cross_entropy(network.classifier(H), on.labels).backward()
    first, *_, last = (layer for layer in network.features if isinstance(layer, nn.Conv2d))
    norms = [float(layer.weight.grad.double().norm()) for layer in (first, last)]
    network.zero_grad()
    H = H.detach()
    measured = ranks(H.mT[None])
    return {
        "rank": float(measured.matrix_rank),
        "rank_bound": float(measured.rank_bound),
        "size": float(H.double().square().mean().sqrt()),
        "alignment": float(alignment(H.double())),
        "first_gradient": norms[0],
        "last_gradient": norms[1],
    }


def alignment(H: Float[Tensor, "N d"]) -> Float[Tensor, ""]:
    """Return the mean absolute cosine of two images' gradients by the classifier's weights.

    The gradient of image i for class k is a number times H_i (Eq. 97), so that the cosine is the
    one of H_i and H_j. Images with H_i = 0 have no direction and are excluded. H: last hidden
    representations, images as rows.
    """
    length = H.norm(dim=1, keepdim=True)
    directions = (H / length)[(length > 0)[:, 0]]
    cosines = (directions @ directions.mT).abs()
    n = len(cosines)
    return (cosines.sum() - cosines.trace()) / (n * (n - 1))
