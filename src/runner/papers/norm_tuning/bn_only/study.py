"""Study `bn_only`: the experiment of paper A, Appendix E (figures 4 and 5).

The target is the random network g(x) = sum relu(W* x), W* (d, d). The network f of Theorem 1
imitates the target. Its random weights W1 (m, d) and W2 (d, m) are frozen. The methods are:

- `sgd` (blue): SGD trains gamma and beta of f, the parameters of its BatchNorm layers. It begins at
  gamma = 1 and beta = 0 (0.1 in the last layer).
- `teacher_construction` (green): Theorem 1 sets gamma and beta, from W*.
- `dense` (black): SGD trains a random network of the target's shape.
- `student_construction` (orange): Theorem 1 sets gamma and beta, from the weights of the trained
  network `dense`.

Inputs are standard Gaussian. In one epoch no input is seen twice, so the loss before a step is an
error on new samples. All methods of a replicate share target, frozen weights and samples.

The paper gives no learning rate. Here it is half of 2 / curvature, the largest stable learning
rate. The curvature is that of the loss along beta of the last layer, measured on the first batch of
each network.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import ceil, nan, sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context, Measured, network_name
from runner.data.gaussian import GaussianStream
from runner.networks import own_calls
from runner.papers.norm_tuning.bn_only import networks
from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN, BnOnly
from runner.papers.norm_tuning.bn_only.networks import Batch, Dense, FrozenWithNorm, f, g
from runner.papers.norm_tuning.bn_only.rows import Approximation, CurvePoint
from runner.papers.norm_tuning.theorem_1 import Norm, pseudo_inverse, set_shifts
from runner.papers.norm_tuning.theory import random_matrix
from runner.training.optimizers import Optimizer, optimizer_of
from runner.training.schedules import SCHEDULES

CURVE_POINTS = 12
"""Number of points of a training curve, at the ends of equally long parts."""

CHUNK = 128
"""Number of samples per replicate that are measured at once; they fit in the cache."""

Key = tuple[str, int]
"""Key of a network: the method, and the width m (d for `dense`)."""

Columns = dict[str, Float[Tensor, " R"]]
ERRORS = ("test_mse", "relative_mse", "max_abs_error", "source_mse", "float32_mse")
"""Error columns of a network; only constructions have the last two."""

Found = dict[Key, Norm | Tensor]
"""Trained or constructed parameters in float64: gamma and beta, or the weights W of `dense`."""

TEACHER, STUDENT = "teacher_construction", "student_construction"
TRAINED = {"sgd": ["sgd"], TEACHER: [], "dense": ["dense"], STUDENT: ["dense"]}
"""Networks that have to be trained for each method."""


class Problem(NamedTuple):
    """The weights of the target and the initial or frozen weights of all R replicates.

    All are float64 on the CPU. d is the width of the target, m that of the frozen network f.
    """

    target: Float[Tensor, "R d d"]
    student: Float[Tensor, "R d d"]  # initial weights of `dense`
    W1: Float[Tensor, "R m d"]  # of the widest f; a narrower f has its first units
    W2: dict[int, Float[Tensor, "R d m"]]  # by m


class Learner(NamedTuple):
    """The networks of one method and width in all R replicates, during training."""

    network: Dense | FrozenWithNorm
    optimizer: Optimizer
    rates: Float[Tensor, " R"]  # learning rates before the schedule
    mse: Float[Tensor, " R"]  # mean loss since the last point of the curve

    def step(self, gradients: dict[str, Tensor], fraction: float) -> None:
        """Take one step of the optimizer, in place.

        gradients: one tensor for each trained parameter, by name. fraction: the current learning
        rate divided by the initial one.
        """
        self.optimizer.step(gradients, self.rates * fraction)

    def state(self) -> dict[str, Tensor]:
        """Return by name the tensors that training changes, for a checkpoint."""
        tensors = {f"optimizer.{name}": tensor for name, tensor in self.optimizer.stored().items()}
        tensors |= {"rates": self.rates, "mse": self.mse}
        return self.network.parameters | self.network.running | tensors

    def traced(self, problem: Problem, r: int, x: Float[Tensor, "R d N"]) -> dict[str, Tensor]:
        """Return by name the tensors of one replicate's network, for a user's measurement.

        The tensors are the parameters, running statistics, frozen weights, and inputs `x` with
        samples as rows. r: the replicate. x: inputs of all replicates, with samples as columns.
        """
        of_all = {"x": x.mT, **self.network.parameters, **self.network.running}
        if isinstance(self.network, FrozenWithNorm):
            W2 = self.network.W2
            of_all |= {"W1": problem.W1[:, : W2.shape[2]].to(W2), "W2": W2}
        return {name: tensor[r] for name, tensor in of_all.items()}


def run(config: BnOnly, context: Context) -> Iterator[CurvePoint | Approximation | Measured]:
    """Train and construct all networks, and measure them on new samples.

    Yields the rows of both tables, and rows of the user's function `measure`.
    """
    problem = draw_problem(config)
    learners = start(config, context, problem)
    yield from train(config, context, problem, learners)

    trained: Found = {key: learner.network.found() for key, learner in learners.items()}
    built, columns = construct(config, problem, trained.get(("dense", config.target_width)))
    for key, learner in learners.items():
        columns[key] = {"train_mse": learner.mse, "learning_rate": learner.rates}
    errors = measure(config, context, problem, trained | built)
    yield from metrics(config, {key: columns[key] | errors[key] for key in columns})


def draw_problem(config: BnOnly) -> Problem:
    """Draw the weights of the target, of the dense network and of the frozen network f.

    The weights of the target, of the dense network and W1 have entries from N(0, 1/d), and W2 from
    N(0, 2/m). If only a fraction p of W1 and W2 is nonzero, both are divided by sqrt(p). Each
    matrix of a replicate has a separate random stream.
    """
    d, widest, p = config.target_width, max(config.m), config.sparsity

    def draw(purpose: str, rows: int, columns: int, p: float = 1.0) -> Tensor:
        streams = (config.stream(replicate, purpose) for replicate in range(config.replicates))
        drawn = [random_matrix(rows, columns, stream, p) for stream in streams]
        return torch.stack(drawn) / sqrt(p)

    W2 = draw("W2", d, widest, p)
    return Problem(
        target=draw("target", d, d) / sqrt(d),
        student=draw("student", d, d) / sqrt(d),
        W1=draw("W1", widest, d, p) / sqrt(d),
        W2={m: W2[..., :m] * sqrt(2 / m) for m in config.m},
    )


def start(config: BnOnly, context: Context, problem: Problem) -> dict[Key, Learner]:
    """Return the networks to train, in float32 with initial weights, by method and width.

    Raises InputError for an unknown name in the parameters.
    """
    learners: dict[Key, Learner] = {}

    def begin(network: Dense | FrozenWithNorm) -> Learner:
        zeros = torch.zeros(config.replicates, dtype=torch.float64, device=context.device)
        optimizer = optimizer_of(config.optimizer, network.parameters)
        return Learner(network, optimizer, rates=zeros, mse=zeros.clone())

    trained = {name for method in config.methods for name in lookup("methods", method, TRAINED)}
    if "dense" in trained:
        W = problem.student.float().to(context.device)
        learners["dense", config.target_width] = begin(Dense(W))
    batch_statistics = lookup("statistics", config.statistics, {"batch": True, "fixed": False})
    for m in config.m if "sgd" in trained else ():
        W2 = problem.W2[m].float().to(context.device)
        learners["sgd", m] = begin(FrozenWithNorm(W2, batch_statistics))
    return learners


def train(
    config: BnOnly, context: Context, problem: Problem, learners: dict[Key, Learner]
) -> Iterator[CurvePoint | Measured]:
    """Train all networks on the same batches; yield the points of their training curves.

    The loss of a batch is measured before the step on the batch. Rows of the user's function
    `measure` are yielded, too. learners: the networks by method and width.
    """
    part = ceil(config.train_samples / config.batch_size / CURVE_POINTS) if learners else 0
    epoch, part = CURVE_POINTS * part, config.epochs * part
    steps = CURVE_POINTS * part
    target, W1 = (tensor.float().to(context.device) for tensor in (problem.target, problem.W1))
    inputs = stream(config, context, "train")
    schedule = lookup("schedule", config.schedule, SCHEDULES)
    first = restore(context, learners, inputs)
    own_calls.at(config.replicates, first)
    with context.progress(steps, "training", first) as bar:
        for step in range(first, steps):
            if step % epoch == 0:
                inputs = stream(config, context, "train")
            x = inputs.draw(config.batch_size).mT
            batch = Batch(x, g(x, target), W1)
            fraction = schedule(step, steps)
            for learner in learners.values():
                loss, gradients, on = learner.network.step(batch)
                if step == 0:  # half of 2 / curvature
                    learner.rates[:] = config.learning_rate or 1 / networks.curvature(on)
                if step % part == 0:
                    learner.mse.zero_()
                learner.mse.add_(loss, alpha=1 / part)
                learner.step(gradients, fraction)
            bar.update(1)
            if (step + 1) % part == 0:
                samples = (step + 1) * config.batch_size
                for (method, m), learner in learners.items():
                    name = network_name(method, width=m)
                    for r, mse in enumerate(learner.mse.tolist()):
                        yield CurvePoint(method, m, r, samples, mse)
                        now = partial(learner.traced, problem, r, x)
                        yield from context.hand_over(name, r, samples, now)
                context.checkpoint(partial(state, learners, inputs, step + 1))
                own_calls.at(config.replicates, step + 1)


def named(learners: dict[Key, Learner]) -> dict[str, Tensor]:
    """Return by name all tensors that training changes, of all networks.

    learners: the networks by method and width.
    """
    return {
        f"{method}.{m}.{name}": tensor
        for (method, m), learner in learners.items()
        for name, tensor in learner.state().items()
    }


def state(learners: dict[Key, Learner], inputs: GaussianStream, step: int) -> dict[str, Tensor]:
    """Return by name all tensors from which an interrupted training can continue.

    inputs: the random inputs of training. step: the number of finished steps.
    """
    return {"step": torch.tensor(step)} | inputs.state() | named(learners)


def restore(context: Context, learners: dict[Key, Learner], inputs: GaussianStream) -> int:
    """Set the networks and the random inputs to the state in the checkpoint, if there is one.

    Returns the number of finished steps; 0 without a checkpoint.
    """
    if context.restored is None:
        return 0
    inputs.restore(context.restored)
    for (method, m), learner in learners.items():
        first = f"{method}.{m}.optimizer."
        own = {name: t for name, t in context.restored.items() if name.startswith(first)}
        learner.optimizer.restore({name.removeprefix(first): own[name] for name in own})
    for name, tensor in named(learners).items():
        tensor.copy_(context.restored[name])
    return int(context.restored["step"])


def stream(config: BnOnly, context: Context, purpose: str) -> GaussianStream:
    """Return the random Gaussian inputs of all replicates, from the beginning of their streams.

    purpose: `train` or `test`.
    """
    width = config.target_width
    return GaussianStream(
        config.streams().generator, config.replicates, purpose, width, context.device
    )


def construct(
    config: BnOnly, problem: Problem, learned: Float[Tensor, "R d d"] | None
) -> tuple[Found, dict[Key, Columns]]:
    """Return gamma and beta of Theorem 1, and numbers about the linear systems that were solved.

    Both results are dictionaries by method and width. The second has the columns `condition_number`
    and `numerical_rank`. learned: weights W of the trained dense network; None if no method needs
    them.
    """
    sources = {TEACHER: problem.target, STUDENT: learned}
    sources = {method: W.cpu() for method, W in sources.items() if method in config.methods}
    input_norm, built, systems = sqrt(config.target_width) + SHIFT_MARGIN, {}, {}
    for m in config.m if sources else ():
        frozen = problem.W1[:, :m], problem.W2[m]
        scales, condition_number, rank = pseudo_inverse(*frozen, [*sources.values()])
        for method, gamma1 in zip(sources, scales.split(1, dim=-1), strict=True):
            built[method, m] = set_shifts(*frozen, gamma1, input_norm)
            systems[method, m] = {"condition_number": condition_number, "numerical_rank": rank}
    return built, systems


def measure(config: BnOnly, context: Context, problem: Problem, norms: Found) -> dict[Key, Columns]:
    """Return the errors of all networks on the same new samples, in float64.

    norms: by method and width, gamma and beta, or the weights of the dense network. The result has
    for each network the measured columns of the table `metrics`, by name. Constructed networks are
    also measured in float32, the usual precision of a network.
    """
    d, samples, device = config.target_width, config.test_samples, context.device
    inputs = stream(config, context, "test")
    target, W1 = problem.target.to(device), problem.W1.to(device)
    W2 = {m: W.to(device) for m, W in problem.W2.items()}
    norms = {key: norm.to(device) for key, norm in norms.items()}
    zeros = torch.zeros(3, config.replicates, dtype=torch.float64, device=device)
    labels, largest = zeros[:2].clone(), dict.fromkeys(norms, zeros[0])
    squares = {key: zeros.clone() for key in norms}
    on: dict[Key, Columns] = {}
    with context.progress(samples, "measuring", unit="samples") as bar:
        for begin in range(0, samples, CHUNK):
            x = inputs.draw(min(CHUNK, samples - begin)).double().mT
            y, h1 = g(x, target), W1 @ x
            labels += torch.stack([y.sum(-1), y.square().sum(-1)])
            learned = g(x, norms["dense", d]) if ("dense", d) in norms else y
            for (method, m), norm in norms.items():
                output = learned if method == "dense" else f(h1[:, :m], W2[m], norm)
                if begin == 0 and method == "sgd":
                    active = norm.gamma1 * h1[:, :m] + norm.beta1 > 0
                    on[method, m] = {"units_on": active.double().mean((1, 2))}
                source = single = torch.full_like(y, nan)
                if method not in ("dense", "sgd"):
                    source = learned if method == STUDENT else y
                    in_float32 = (tensor.float() for tensor in (h1[:, :m], W2[m]))
                    single = f(*in_float32, norm.to(torch.float32)).double()
                off = torch.stack([output - y, output - source, single - source])
                squares[method, m] += off.square().sum(-1)
                largest[method, m] = largest[method, m].maximum(off[0].abs().amax(-1))
            bar.update(x.shape[-1])
    mean, mean_square = labels / samples
    variance = mean_square - mean.square()
    measured = {}
    for key, norm in norms.items():
        mse, source, in_float32 = squares[key] / samples
        numbers = (mse, mse / variance, largest[key], source, in_float32)
        measured[key] = dict(zip(ERRORS, numbers, strict=True))
        measured[key] |= sizes(norm) if isinstance(norm, Norm) else {}
        measured[key] |= on.get(key, {})
    return measured


def metrics(config: BnOnly, columns: dict[Key, Columns]) -> Iterator[Approximation]:
    """Yield the rows of the table `metrics`, for all methods, widths and replicates.

    columns: the measured columns of each network, by method and width. The dense network has no
    width m, so its numbers are repeated at every width.
    """
    d, p = config.target_width, config.sparsity
    training = {name: getattr(config, name) for name in ("optimizer", "schedule", "statistics")}
    for m, method in product(config.m, config.methods):
        of_method = columns[method, d if method == "dense" else m]
        how = training if method in ("sgd", "dense") else {}
        for r in range(config.replicates):
            numbers = {name: float(values[r]) for name, values in of_method.items()}
            yield Approximation(method, d, m, p, r, **numbers, **how)


def sizes(norm: Norm) -> Columns:
    """Return the smallest and the largest |gamma1|, and the largest |beta|, of each replicate.

    norm: gamma and beta of the networks. The keys of the result are columns of the table `metrics`.
    """
    gamma1, beta1, _, beta2 = (tensor.abs() for tensor in norm)
    return {
        "smallest_scale": gamma1.amin((1, 2)),
        "largest_scale": gamma1.amax((1, 2)),
        "largest_shift": beta1.amax((1, 2)).maximum(beta2.amax((1, 2))),
    }
