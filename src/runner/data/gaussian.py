"""Standard Gaussian inputs. Each is used once, and each replicate has a separate random stream."""

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import Stream


class GaussianStream:
    """An endless sequence of standard Gaussian inputs, with a separate random stream per replicate.

    - stream: a function of a replicate and a purpose that returns a random generator;
    - replicates: R, the number of replicates;
    - purpose: the purpose of the random streams, such as "inputs";
    - width: d, the dimension of an input;
    - device: the device to which inputs are moved; they are drawn on the CPU.
    """

    def __init__(
        self, stream: Stream, replicates: int, purpose: str, width: int, device: torch.device
    ) -> None:
        self.width, self.device = width, device
        self.generators = [stream(replicate, purpose) for replicate in range(replicates)]

    def draw(self, samples: int) -> Float[Tensor, "R N d"]:
        """Return the next N = `samples` inputs of each of R replicates, in float32."""
        x = torch.empty(len(self.generators), samples, self.width)
        for replicate, stream in enumerate(self.generators):
            x[replicate].normal_(generator=stream)
        return x.to(self.device)

    def state(self) -> dict[str, Tensor]:
        """Return the states of all random generators by the replicate's index, for a checkpoint."""
        return {f"{index}": stream.get_state() for index, stream in enumerate(self.generators)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a result of the method `state`."""
        for index, stream in enumerate(self.generators):
            stream.set_state(state[f"{index}"])
