"""Standard Gaussian inputs, each drawn once, from a separate stream for each replicate."""

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import Stream


class GaussianStream:
    """Endless standard Gaussian inputs in R^d for each of R replicates, moved to `device`."""

    def __init__(
        self, stream: Stream, replicates: int, purpose: str, width: int, device: torch.device
    ) -> None:
        self.width, self.device = width, device
        self.generators = [stream(replicate, purpose) for replicate in range(replicates)]

    def draw(self, samples: int) -> Float[Tensor, "R N d"]:
        """Return the next N inputs of each replicate, in float32."""
        x = torch.empty(len(self.generators), samples, self.width)
        for replicate, stream in enumerate(self.generators):
            x[replicate].normal_(generator=stream)
        return x.to(self.device)

    def state(self) -> dict[str, Tensor]:
        """Return the position in each replicate's stream, for a checkpoint."""
        return {f"{index}": stream.get_state() for index, stream in enumerate(self.generators)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue at the position where `state` was taken."""
        for index, stream in enumerate(self.generators):
            stream.set_state(state[f"{index}"])
