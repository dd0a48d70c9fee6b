"""Adam on a stack of networks of different depths, with the ridge inside the gradient."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import generator
from runner.core.studies import Context
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure.recipes import Recipe
from runner.papers.bottleneck_structure.spectra import threshold_rank
from runner.papers.bottleneck_structure.stack import DepthStack

STEPS_AT_ONCE = 100
"""Steps between two looks at the clock, the rank and the checkpoint."""

BETAS = (0.9, 0.99)
"""Of Adam. With its default 0.999 what the ridge should shrink stays large: the steps there remain
normalised by the gradients of the start."""

Batch = tuple[Float[Tensor, "R d_in N"], Float[Tensor, "R d_out N"]]


def start(
    stack: DepthStack,
    replicates: list[int],
    recipe: Recipe,
    seed: int,
    numbers: list[int] | None = None,
) -> DepthStack:
    """Draw the weights of every network from the stream of its replicate and depth.

    numbers: of each network among the starts of its replicate and depth; None: all 0.
    """
    numbers = numbers or [0] * len(replicates)
    for r, (L, replicate, number) in enumerate(zip(stack.depths, replicates, numbers, strict=True)):
        purpose = f"initialisation/{L}" + (f"/{number}" if number else "")
        stack.initialize(r, recipe.gain, generator(seed, replicate, purpose))
    return stack


class RidgeTrainer:
    """Minimises `C(f) + lambda ||theta||^2` for every network of a stack.

    The ridge's gradient 2 lambda theta is added to the cost's before Adam sees it.
    """

    def __init__(
        self, stack: DepthStack, recipe: Recipe, ridge: float, learning_rate: float, steps: int
    ) -> None:
        self.stack, self.recipe, self.ridge = stack, recipe, ridge
        self.learning_rate, self.steps, self.step = learning_rate, steps, 0
        stack.parameters.grad = stack.gradient
        # One flat tensor: a single pass over memory for all networks.
        self.adam = torch.optim.Adam([stack.parameters], lr=learning_rate, betas=BETAS, fused=True)

    def advance(self, batch: Batch) -> Float[Tensor, " R"]:
        """One step; the cost of every network before it."""
        cost = self.stack.descend(*batch)
        settings = self.adam.param_groups[0]
        settings["lr"] = self.learning_rate * self.recipe.rate_factor(self.step, self.steps)
        settings["weight_decay"] = 2 * self.ridge * self.recipe.ridge_factor(self.step, self.steps)
        self.adam.step()
        self.step += 1
        return cost

    def run(self, batches: Callable[[int], list[Batch]], context: Context) -> None:
        """All steps, from the last checkpoint on.

        batches: gives the batches of a block of steps by its index, or one batch for all steps.
        """
        if context.restored is not None:
            self._restore(context.restored)
        with context.progress(self.steps, "training", self.step) as bar:
            while self.step < self.steps:
                block = batches(self.step // STEPS_AT_ONCE)
                first = self.step
                while self.step < min(first + STEPS_AT_ONCE, self.steps):
                    cost = self.advance(block[self.step % len(block)])
                    bar.update(loss=partial(self._loss, cost), rank=self._rank)
                context.checkpoint(self.state)

    def _loss(self, cost: Float[Tensor, " R"]) -> Float[Tensor, " R"]:
        """What is minimised, of every network."""
        return cost + self.ridge * self.stack.parameter_norms()

    def _rank(self) -> list[float]:
        """The rank in the middle of every network."""
        middle = [self.stack.middle(r).cpu() for r in range(len(self.stack.depths))]
        return [threshold_rank(svdvals(W)) for W in middle]

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint needs to go on."""
        moments = self.adam.state[self.stack.parameters]
        return {
            "step": torch.tensor(self.step),
            "parameters": self.stack.parameters,
            "first": moments["exp_avg"],
            "second": moments["exp_avg_sq"],
        }

    def _restore(self, state: dict[str, Tensor]) -> None:
        self.step = int(state["step"])
        self.stack.parameters.copy_(state["parameters"])
        device = self.stack.parameters.device
        self.adam.state[self.stack.parameters] = {
            "step": torch.tensor(float(self.step), device=device),
            "exp_avg": state["first"].to(device),
            "exp_avg_sq": state["second"].to(device),
        }
