"""Training procedures of the networks of paper D. The paper gives only lambda.

Whether training fails depends on the initialization. Weights become zero where the gradient of the
cost is far below the gradient of the weight decay. Adam normalizes the gradient of the weight decay
to a full step.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Initial weights, learning rate, and schedule of the weight decay.

    The weight decay is 0 for `warmup` steps. It rises linearly to `peak` times lambda until the
    fraction `rise_end` of the steps, and remains constant until `peak_end`. For the remaining steps
    it is lambda. A training of at most `warmup` steps has no weight decay.
    """

    gain: float
    """Size of the initial weights, N(0, gain^2 / fan_in); biases are 0."""
    learning_rate: float
    warmup: int = 0
    peak: float = 1.0
    rise_end: float = 0.0
    peak_end: float = 0.0

    def ridge_factor(self, step: int, steps: int) -> float:
        """Return the weight decay at a step, divided by lambda. steps: total number of steps."""
        if step < self.warmup:
            return 0.0
        if step < self.rise_end * steps:
            return self.peak * (step - self.warmup) / (self.rise_end * steps - self.warmup)
        return self.peak if step < self.peak_end * steps else 1.0


RECIPES = {
    "plain": Recipe(gain=1.0, learning_rate=5e-3),
    "annealed": Recipe(
        gain=1.2, learning_rate=3e-3, warmup=200, peak=5.0, rise_end=0.15, peak_end=0.6
    ),
    "constant": Recipe(gain=1.2, learning_rate=3e-3),
}
"""Training procedures by name.

- `plain`: weight decay lambda from the first step.
- `annealed`: first no weight decay, then up to five times lambda, then lambda.
- `constant`: lambda from the first step, with the initial weights of `annealed`. Networks of depth
  25 with gain 1 converge to zero.
"""
