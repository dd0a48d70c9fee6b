"""How the networks of paper D are trained. The paper gives only the ridge; these choices are ours.

What fails depends on the start: weights vanish where the data gradient is far below the ridge,
since Adam then normalises the ridge's gradient to a full step.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Start, learning rate, and the course of the ridge.

    The ridge is 0 for `warmup` steps, rises linearly to `peak` times lambda until the fraction
    `rise_end` of the steps, stays there until `peak_end`, and is lambda for the rest. Training
    of no more steps than `warmup` has no ridge.
    """

    gain: float
    """Weights start as N(0, gain^2 / fan_in), biases as 0."""
    learning_rate: float
    warmup: int = 0
    peak: float = 1.0
    rise_end: float = 0.0
    peak_end: float = 0.0

    def ridge_factor(self, step: int, steps: int) -> float:
        """Return the ridge at a step, relative to lambda."""
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
}
"""`plain`: the ridge from the start. `annealed`: fit first, then press the rank down, then
relax.
"""
