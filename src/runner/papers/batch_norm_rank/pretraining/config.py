"""Parameters of study `pretraining`, with the defaults of each protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from runner.core.choices import Datasets
from runner.core.errors import InputError
from runner.core.studies import LARGEST_STEP, parameter
from runner.data import LABELLED
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs

METHODS = (
    "vanilla",
    "pretrained",
    "batch_norm",
    "batch_norm_asymmetric",
    "scale_matched",
    "unit_scale",
    "he",
    "orthogonalised",
    "orthogonalised_half",
)

GRID = [0.003, 0.01, 0.03, 0.1]

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fig4": {  # code_fig_4_pre_training.py and code_fig_4_bn.py
        "batch_size": 64,
        "epochs": 100,
        "learning_rates": [0.01, 0.001],
        "batch_norm_rates": [0.01, 0.001, 0.0001],
        "pretraining_steps": [1000],
        "gradient_steps": 40,
        "pretraining_batch_size": 64,
        "steps": [0.001],
    },
    "fig6": {  # code_fig_6.ipynb
        "batch_size": 32,
        "epochs": 15,
        "learning_rates": [0.01],
        "batch_norm_rates": [0.01],
        "pretraining_steps": [5, 75],
        "gradient_steps": 1,
        "pretraining_batch_size": 32,
        "steps": [0.1],
    },
    "text": {
        "batch_size": 64,
        "epochs": 75,
        "learning_rates": GRID,
        "batch_norm_rates": GRID,
        "pretraining_steps": [25, 75],
        "gradient_steps": 1,
        "pretraining_batch_size": 128,
        "steps": [0.02, 0.04, 0.065, 0.1],
    },
}
SETTINGS = {**SETTINGS, "ours": {**SETTINGS["text"], "steps": [0.02, 0.05, 0.1, 0.2]}}
"""Defaults of each protocol. The paper gives no step size, learning rate or M."""


@dataclass(frozen=True)
class Pretraining(TrainedMLPs):
    """Parameters of study `pretraining`, figures 4, 6, 11 and 12 of paper B.

    The study raises r, the lower bound of the rank, before training, and compares the networks with
    batch norm.
    """

    study: ClassVar[str] = "pretraining"
    named: ClassVar[tuple[str, ...]] = ("depth",)
    version: ClassVar[int] = 4  # protocols

    protocol: str = parameter(
        "how pre-training is done; authors: following the authors' code; text: as Section 4 of"
        " the paper describes; ours: the ascent rotates weights of unit size",
        "authors",
        choices=("authors", "text", "ours"),
    )
    script: str = parameter(
        "figure whose script by the authors is followed", "fig6", choices=("fig6", "fig4")
    )
    depth: int = parameter(
        "L: number of hidden layers; with batch norm and script=fig6 there is one more",
        30,
        minimum=1,
    )
    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)", "digits", choices=Datasets(LABELLED)
    )
    methods: list[str] = parameter("networks to compare", list(METHODS[:4]), choices=METHODS)
    pretraining_steps: list[int] | None = parameter(
        "M: list of numbers of minibatches of pre-training (script=fig6: numbers of steps on each"
        " layer, one layer after the other; null: depends on protocol and script)",
        None,
        minimum=1,
    )
    gradient_steps: int | None = parameter(
        "T: number of steps of the ascent on each minibatch (null: depends on protocol and script)",
        None,
        minimum=1,
    )
    pretraining_batch_size: int | None = parameter(
        "N of Algorithm 1: number of images of one minibatch of pre-training (null: depends on"
        " protocol and script)",
        None,
        minimum=2,
    )
    steps: list[float] | None = parameter(
        "step sizes of the ascent to try; all M use the step size that raises r most"
        " (protocol=ours: angles in radians; null: depends on protocol and script)",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )
    batch_size: int | None = parameter(
        "number of images of one SGD step (null: depends on protocol and script)", None, minimum=2
    )
    epochs: int | None = parameter(
        "passes over the training images (null: depends on protocol and script)", None, minimum=1
    )
    learning_rates: list[float] | None = parameter(
        "learning rates of SGD to try without batch norm; each network is judged at its best one"
        " (null: depends on protocol and script)",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )
    batch_norm_rates: list[float] | None = parameter(
        "learning rates of SGD to try with batch norm (null: depends on protocol and script)",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.script != "fig6" and self.protocol != "authors":
            raise InputError(f"script={self.script} needs protocol=authors, not {self.protocol}")

    @property
    def way(self) -> str:
        """Return the training procedure, a key of SETTINGS: the authors' script or the protocol."""
        return self.script if self.protocol == "authors" else self.protocol

    def settled(self) -> "Pretraining":
        """Return the parameters with each null replaced by the protocol's default."""
        settings = SETTINGS.get(self.way, {})
        return replace(self, **{n: v for n, v in settings.items() if getattr(self, n) is None})

    def rates_of(self, method: str) -> list[float]:
        """Return the learning rates at which a method is trained."""
        normalized = method.startswith("batch_norm")
        return self.batch_norm_rates if normalized else self.learning_rates

    @property
    def chooses(self) -> bool:
        """Return whether learning rates or steps of pre-training are chosen from several."""
        return bool(self.grids())

    def grids(self) -> dict[str, list[Any]]:
        """Return the learning rates and step sizes that the training procedure chooses from."""
        settled = self.settled()
        names = ("learning_rates", "batch_norm_rates", "steps")
        return {n: values for n in names if len(values := getattr(settled, n)) > 1}

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "pretraining"."""
        if self.epochs is None:
            return self.settled().purposes()
        mine = ("glorot", "positive", "passing", "scaling", "orthogonalising", "pretraining")
        return super().purposes() + mine
