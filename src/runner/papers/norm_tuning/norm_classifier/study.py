"""Study `norm_classifier`: a frozen copy of a digit classifier, by Theorem 1 of paper A or trained.

The target is a ReLU classifier of scikit-learn's digits (64 pixels, d hidden units, 10 classes).
Two frozen random layers with d_in d_out hidden units replace each of its layers (Theorem 1, Remark
2). Their scales gamma and shifts beta are

- `construction`: set by Theorem 1 from the target's weights;
- `usual`: trained on the labels from gamma = 1 and beta = 0, in BatchNorm layers with the
  statistics of all training images;
- `active`: trained on the labels with all hidden ReLUs active. The shifts are those of Lemma 7 at
  every step, so a pair of layers computes `W2 diag(gamma) W1 x + beta`. Here gamma and this beta
  are trained.

The target and its copies are trained on the same images, by Adam on all images at once.
"""

from collections.abc import Callable, Iterator, Sequence
from math import nan

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from runner.core.studies import Context
from runner.data import digits
from runner.papers.norm_tuning.classifier import train_classifier
from runner.papers.norm_tuning.modules import as_modules
from runner.papers.norm_tuning.network import Network, agreement, relu_network
from runner.papers.norm_tuning.norm_classifier.config import NormClassifier
from runner.papers.norm_tuning.norm_classifier.rows import Copy
from runner.papers.norm_tuning.theory import Pair, wide, wide_weights
from runner.training.accuracies import accuracy

Images = tuple[Float[Tensor, "_ 64"], Int[Tensor, " _"]]
"""Pixels and labels."""

Logits = Callable[[Float[Tensor, "_ 64"]], Float[Tensor, "_ 10"]]


def run(config: NormClassifier, context: Context) -> Iterator[Copy]:
    """Train a classifier for each replicate, construct and train its copies, and yield the rows."""
    train, test = ((x.flatten(1).double(), y) for x, y in digits.read())
    input_norm = float(torch.cat([train[0], test[0]]).norm(dim=1).max())
    with context.progress(2 * config.steps * config.replicates, "training") as bar:
        for replicate in range(config.replicates):
            d, stream = config.target_width, config.stream(replicate, "target")
            target = train_classifier(d, 2, stream, *train)
            pairs = wide_weights(target, None, config.stream(replicate, "frozen weights"))
            construction = wide(target, pairs, input_norm).network
            copies: dict[str, Logits] = {
                "target": target,
                "construction": construction,
                "usual": train_usual(construction, train, config, bar.update),
                "active": train_active(pairs, train, config, bar.update),
            }
            for method, logits in copies.items():
                yield measured(logits, target, train, test, (method, d, replicate))


def train_usual(
    network: Network, images: Images, config: NormClassifier, count: Callable[[int], None]
) -> Logits:
    """Train gamma and beta of a frozen network; return the map from images to logits.

    Training begins at gamma = 1 and beta = 0, in float32.

    - network: a network with the frozen weights.
    - images: training images and labels.
    - count: called with 1 after each step.
    """
    x, y = images
    copy = as_modules("batch_norm", network, x).float().train()
    norms = [module for module in copy if isinstance(module, nn.BatchNorm1d)]
    for norm in norms:
        nn.init.ones_(norm.weight)
        nn.init.zeros_(norm.bias)
    parameters = [p.requires_grad_() for norm in norms for p in (norm.weight, norm.bias)]
    x = x.float()
    descend(lambda: cross_entropy(copy(x), y), parameters, config, count)
    for norm in norms:
        norm.momentum = 1.0  # evaluation uses the statistics of all training images
    with torch.no_grad():
        copy(x)
    copy.eval()
    return lambda points: copy(points.float())


def train_active(
    pairs: Sequence[Pair], images: Images, config: NormClassifier, count: Callable[[int], None]
) -> Logits:
    """Train gamma and beta of a frozen network whose hidden ReLUs are always active.

    With the shifts of Lemma 7 of paper A, each pair of layers computes `W2 diag(gamma) W1 x +
    beta`. Training begins at gamma = 1 and beta = 0.

    - pairs: frozen weights W1, W2 of each pair.
    - images: training images and labels.
    - count: called with 1 after each step.
    """
    x, y = images
    scales = [torch.ones(len(W1), dtype=torch.float64, requires_grad=True) for W1, _ in pairs]
    shifts = [torch.zeros(len(W2), dtype=torch.float64, requires_grad=True) for _, W2 in pairs]

    def dense() -> Network:
        """Return the dense network that the frozen pairs of layers compute."""
        weights = [(W2 * gamma) @ W1 for (W1, W2), gamma in zip(pairs, scales, strict=True)]
        return relu_network(weights, shifts)

    descend(lambda: cross_entropy(dense()(x), y), [*scales, *shifts], config, count)
    with torch.no_grad():
        return dense()


def descend(
    loss: Callable[[], Tensor],
    parameters: list[Tensor],
    config: NormClassifier,
    count: Callable[[int], None],
) -> None:
    """Minimize a loss in place by `config.steps` steps of Adam.

    - loss: computes the loss from the current parameters.
    - parameters: the tensors to train.
    - count: called with 1 after each step.

    The learning rate falls to 0 along a cosine.
    """
    optimizer = torch.optim.Adam(parameters, lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    for _ in range(config.steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()
        count(1)


def measured(
    logits: Logits, target: Network, train: Images, test: Images, key: tuple[str, int, int]
) -> Copy:
    """Measure the loss and the accuracies of a classifier, and return its row.

    - logits: function from images to logits.
    - target: the classifier with whose predictions it is compared.
    - train, test: images and labels.
    - key: method, number d of hidden units, and replicate.
    """
    with torch.no_grad():
        on_train, on_test = logits(train[0]), logits(test[0])
    losses, shares = [], []
    for out, (_, y) in ((on_train, train), (on_test, test)):
        losses.append(cross_entropy(out.double(), y))
        shares.append(float(accuracy((out.argmax(1) == y).double().mean(), losses[-1])))
    agreeing = nan if losses[1].isnan() else agreement(on_test, target(test[0]))
    return Copy(*key, float(losses[0]), *shares, agreeing)
