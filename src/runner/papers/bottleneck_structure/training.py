"""Train networks of different depths at once by Adam, with the weight decay inside the gradient."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.progress import Progress
from runner.core.streams import Stream
from runner.core.studies import Context
from runner.papers.bottleneck_structure.networks import random_network
from runner.papers.bottleneck_structure.purposes import STEPS_AT_ONCE, initialization
from runner.papers.bottleneck_structure.recipes import Recipe
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.training.schedules import cosine_decay

THIN_EVERY = 1000
"""Number of steps between two removals of dead neurons, once the weight decay has risen."""

REPLICATES_DONE = "replicates"
"""Key in a checkpoint for the number of finished replicates."""

BETAS = (0.9, 0.99)
"""Decay rates of Adam. With the default 0.999 in place of 0.99, weight decay acts slowly.

The steps would stay normalized by the large gradients of the first steps.
"""

Batch = tuple[Float[Tensor, "R d_in N"], Float[Tensor, "R d_out N"]]


def start(
    stack: DepthStack,
    replicates: list[int],
    recipe: Recipe,
    stream: Stream,
    numbers: Sequence[int] = (),
) -> DepthStack:
    """Draw the initial weights of every network of the stack; return the stack.

    The random stream of a network depends on its replicate, depth and number. replicates: the
    replicate of each network. numbers: for each network the index among the initializations of its
    replicate and depth; (): all 0.
    """
    numbers = numbers or [0] * len(replicates)
    for r, (L, replicate, number) in enumerate(zip(stack.depths, replicates, numbers, strict=True)):
        draw = stream(replicate, initialization(L, number))
        sizes = [stack.d_in, *[stack.width] * (L - 1), stack.d_out]
        stack.load(r, random_network(sizes, recipe.gain, draw))
    return stack


class RidgeTrainer:
    """Minimizer of `C(f) + lambda ||theta||^2` for every network of a stack, by Adam.

    The learning rate falls to zero as a cosine. The gradient 2 lambda theta of the weight decay is
    added to the gradient of the cost before Adam normalizes it. ridge: lambda. steps: total number
    of steps. thin: whether dead neurons are removed.
    """

    def __init__(
        self,
        stack: DepthStack,
        recipe: Recipe,
        ridge: float,
        learning_rate: float,
        steps: int,
        thin: bool = True,
    ) -> None:
        self.stack, self.recipe, self.ridge, self.thins = stack, recipe, ridge, thin
        self.learning_rate, self.steps, self.step = learning_rate, steps, 0
        self._optimize({})

    def _optimize(self, state: dict[str, Tensor]) -> None:
        """Give Adam the parameters of the stack and a state; {}: a new state."""
        parameters = self.stack.parameters
        parameters.grad = self.stack.gradient
        # One flat tensor: a single pass over memory for all networks.
        self.adam = torch.optim.Adam([parameters], lr=self.learning_rate, betas=BETAS, fused=True)
        if state:
            self.adam.state[parameters] = state

    def thin(self) -> None:
        """Remove dead neurons at every THIN_EVERY-th step after the rise of the weight decay."""
        risen = self.recipe.rise_end * self.steps < self.step < self.steps
        if not (self.thins and risen) or self.step % THIN_EVERY:
            return
        state = dict(self.adam.state[self.stack.parameters])
        moments = [name for name in state if name != "step"]
        thinned = self.stack.thin(*(state[name] for name in moments))
        self._optimize(state | dict(zip(moments, thinned, strict=True)))

    def advance(self, batch: Batch) -> Float[Tensor, " R"]:
        """Take one step; return the cost of every network before the step."""
        cost = self.stack.descend(*batch)
        settings = self.adam.param_groups[0]
        settings["lr"] = self.learning_rate * cosine_decay(self.step, self.steps)
        settings["weight_decay"] = 2 * self.ridge * self.recipe.ridge_factor(self.step, self.steps)
        self.adam.step()
        self.step += 1
        return cost

    def run(self, batches: Callable[[int], list[Batch]], context: Context) -> None:
        """Take all steps that remain after the last checkpoint.

        batches: function from the index of a block of STEPS_AT_ONCE steps to a list of minibatches.
        A block uses its minibatches in order, and then again from the first.
        """
        if context.restored is not None:
            self._restore(context.restored)
        with context.progress(self.steps, "training", self.step) as bar:
            while self.step < self.steps:
                self.thin()
                block = batches(self.step // STEPS_AT_ONCE)
                for step in range(self.step, min(self.step + STEPS_AT_ONCE, self.steps)):
                    bar.update(cost=self.advance(block[step % len(block)]))
                context.checkpoint(self.state)

    def after_training(self, replicates: int, context: Context) -> Iterator[tuple[int, Progress]]:
        """Yield every replicate that is not finished in the checkpoint, and the progress bar.

        A replicate counts as finished when the caller asks for the next one.
        """
        done = 0 if context.restored is None else int(context.restored.get(REPLICATES_DONE, 0))
        with context.progress(replicates, "polishing", done, unit="replicates") as bar:
            for replicate in range(done, replicates):
                yield replicate, bar
                bar.update(replicate=replicate)
                finished = {REPLICATES_DONE: torch.tensor(replicate + 1)}
                context.checkpoint(lambda finished=finished: self.state() | finished)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint stores: parameters, widths, state of Adam."""
        widths = torch.tensor(self.stack.widths)
        state = {"parameters": self.stack.parameters, "widths": widths}
        return state | self.adam.state[self.stack.parameters]

    def _restore(self, state: dict[str, Tensor]) -> None:
        device, moments = self.stack.parameters.device, ("step", "exp_avg", "exp_avg_sq")
        self.stack.resume(state["parameters"].to(device), state["widths"].tolist())
        self._optimize({name: state[name].to(device) for name in moments})
        self.step = int(state["step"])
