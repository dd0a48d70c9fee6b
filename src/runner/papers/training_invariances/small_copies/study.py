"""Study `small_copies`: small copies of two experiments that paper C's introduction explains.

- Ji and Telgarsky (2019) train AlexNet and observe the ratio ‖W‖₂² / ‖W‖² of a fully connected
  layer. Here a network of two convolutions and three fully connected layers learns ten classes.
- Huh et al. (2021) observe the effective rank of the features of deep networks, before and after
  training. Here fully connected ReLU networks learn ten classes with the squared loss.

All networks are torch modules with torch's initial weights; only the weights of the fully connected
networks are He's, N(0, 2 / number of inputs). They are trained with momentum on all images.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, one_hot

from runner.core.errors import InputError
from runner.core.studies import Context
from runner.papers.training_invariances.small_copies.config import SmallCopies
from runner.papers.training_invariances.small_copies.rows import FullyConnectedLayer, LastFeatures
from runner.training.optimizers import MOMENTUM


def run(config: SmallCopies, context: Context) -> Iterator[FullyConnectedLayer | LastFeatures]:
    """Train the networks of each replicate, and yield what is measured before and after training.

    Raises InputError if the dataset is not available or has fewer than `samples` training images.
    """
    data = context.load_data(config.data, config.seed, config.checksums)
    if config.samples > len(data.train):
        raise InputError(
            f"samples={config.samples}: {config.data} has {len(data.train)} training images"
        )
    networks = config.replicates * (1 + len(config.depths))
    with context.progress(networks, "training", unit="networks") as bar:
        for replicate in range(config.replicates):
            order = torch.randperm(len(data.train), generator=config.stream(replicate, "images"))
            chosen = order[: config.samples]
            x, y = data.train.pixels[chosen].float(), data.train.labels[chosen]
            x = ((x - x.mean()) / x.std()).to(context.device)
            y = y.to(context.device)
            with torch.random.fork_rng(devices=[]):
                stream = config.stream(replicate, "initialisation")
                torch.manual_seed(int(torch.randint(2**62, (), generator=stream)))
                yield from convolutional(config, replicate, data.classes, x, y)
                bar.update(1)
                for depth in config.depths:
                    yield from fully_connected(config, replicate, depth, data.classes, x, y)
                    bar.update(1)


def convolutional(
    config: SmallCopies, replicate: int, classes: int, x: Tensor, y: Int[Tensor, " n"]
) -> Iterator[FullyConnectedLayer]:
    """Yield the ratios of the fully connected layers of a convolutional network.

    x: images (n, channels, height, width). y: class numbers.
    """
    c, w = config.channels, config.width
    sizes = x.shape[1], c, 2 * c
    begin = [
        layer
        for a, b in zip(sizes, sizes[1:], strict=False)
        for layer in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    ]
    features = 2 * c * (x.shape[2] // 4) * (x.shape[3] // 4)
    end = [nn.Linear(features, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, classes)]
    network = nn.Sequential(*begin, nn.Flatten(), *end).to(x.device)
    for trained in (False, True):
        if trained:
            loss = partial(cross_entropy, target=y)
            fit(network, x, loss, config.convolutional_learning_rate, config.steps)
        with torch.no_grad():
            accuracy = float((network(x).argmax(1) == y).double().mean())
        for layer, linear in enumerate(end[::2], start=1):
            yield FullyConnectedLayer(replicate, layer, trained, ratio(linear.weight), accuracy)


def fully_connected(
    config: SmallCopies,
    replicate: int,
    depth: int,
    classes: int,
    x: Tensor,
    y: Int[Tensor, " n"],
) -> Iterator[LastFeatures]:
    """Yield the effective rank of the last hidden layer of a fully connected ReLU network.

    depth: number of layers. x: images (n, channels, height, width). y: class numbers.
    """
    hidden: list[nn.Module] = [nn.Flatten()]
    for inputs in [x[0].numel()] + [config.width] * (depth - 2):
        linear = nn.Linear(inputs, config.width)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        hidden += [linear, nn.ReLU()]
    body = nn.Sequential(*hidden).to(x.device)
    network = nn.Sequential(body, nn.Linear(config.width, classes)).to(x.device)
    loss = partial(mse_loss, target=one_hot(y, classes).to(x.dtype))
    for trained in (False, True):
        if trained:
            fit(network, x, loss, config.learning_rate, config.steps)
        with torch.no_grad():
            rank, after = effective_rank(body(x)), float(loss(network(x)))
        yield LastFeatures(replicate, depth, trained, rank, after)


def fit(
    network: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor], rate: float, steps: int
) -> None:
    """Train a network in place with momentum, all images in each step.

    loss: a function from the outputs to the loss. rate: learning rate.
    """
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=MOMENTUM)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(x)).backward()
        optimizer.step()


def ratio(W: Float[Tensor, "out in"]) -> float:
    """Return ‖W‖₂² / ‖W‖²; nan if W has nan or inf."""
    W = W.detach().double()
    if not W.isfinite().all():
        return torch.nan
    return float((torch.linalg.matrix_norm(W, 2) / W.norm()).square())


def effective_rank(features: Float[Tensor, "n width"]) -> float:
    """Return the effective rank (Huh et al. 2021): exp of the entropy of p = s² / Σ s².

    s are the singular values. The result is 0 if all features are zero, and nan if one is nan.
    """
    features = features.double()
    if not features.isfinite().all():
        return torch.nan
    p = torch.linalg.svdvals(features).square()
    if not p.sum() > 0:
        return 0.0
    p = p / p.sum()
    return float(torch.special.entr(p).sum().exp())
