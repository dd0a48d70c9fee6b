"""Parameters of study `rank_chain`, in the paper's notation."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil, inf, isinf, sqrt
from typing import ClassVar

from runner.core.choices import LAWS, REGISTERED
from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, MOST, StudyConfig, parameter

SLOWEST = 1e-15
"""Smallest gamma^2 for which the burn-in has a feasible number of layers."""

LOST = {"float64": 2.0**-52, "float32": 2.0**-23}
"""Smallest gamma, by dtype, at which gamma W is not lost in the rounding of the skip connection."""

SMALLEST = 1e-6
"""Smallest gamma for Lemmas 3 and 7; with a smaller gamma, gamma^2 is lost in rounding."""

LARGEST_EXPANDED = 1e100
"""Largest gamma whose squares are within the range of float64 (measure=expansion)."""

EVERY = 10_000
"""Number of layers between two measurements in the authors' code for figure 3a."""

_OF_NO_AVERAGE = {"columns", "samples", "engine", "tau", "dtype", "centred", "input_noise"}

UNUSED = {
    "measure=average": {"input_noise", "draws"},
    "measure=spectrum": {"columns", "burn_in", "stride", "engine", "tau", "draws"},
    "measure=product": {*_OF_NO_AVERAGE, "burn_in", "draws"},
    "measure=expansion": {*_OF_NO_AVERAGE, "stride"},
    "measure=input_rank": {"columns", "input_noise", "draws"},
    "protocol=authors": {"columns", "burn_in", "stride", "samples", "engine", "tau", "input_noise"},
}
"""Parameters that have no effect, by setting. Every scale sets `draws`, so it is never refused."""


@dataclass(frozen=True)
class RankChain(StudyConfig):
    """Parameters of very deep linear networks of paper B, `H_{l+1} = BN(H_l + gamma W_l H_l)`.

    H_l holds the hidden representations of layer l, W_l are random weights, and BN is batch
    normalization. `measure` selects what is measured:

    - `average`: ranks and norms averaged over depth (Figures 3a, 8, 9);
    - `spectrum`: singular values by layer from nearly collinear inputs (Figure 3b);
    - `product`: the collapse without normalization (Lemma 3);
    - `expansion`: the change of the norm over one layer (Lemma 7);
    - `input_rank`: the number of directions that survive from inputs of lower rank.
    """

    study: ClassVar[str] = "rank_chain"
    named: ClassVar[tuple[str, ...]] = ("measure", "widths")
    version: ClassVar[int] = 3  # standard deviations over depth
    unused: ClassVar[Mapping[str, Collection[str]]] = UNUSED

    measure: str = parameter(
        "what is measured; average: ranks and norms, averaged over depth; spectrum: singular"
        " values by layer (figure 3b); product: ratio of singular values without normalization"
        " (Lemma 3); expansion: change of ||M||^2 over a layer (Lemma 7); input_rank: ranks for"
        " inputs of lower rank",
        "average",
        choices=("average", "spectrum", "product", "expansion", "input_rank"),
    )
    protocol: str = parameter(
        "text: as the paper describes figures 3a and 3b; authors: following the authors' code",
        "text",
        choices=("text", "authors"),
    )
    widths: list[int] = parameter(
        "d: list of widths of the networks", [8, 16, 32, 64, 128, 256], minimum=2
    )
    skips: list[float] = parameter(
        "list of residual weights γ in H + γ W H (inf: no skip connection)",
        [0.1, 0.5, 1.0, inf],
        above=0,
    )
    layers: int = parameter(
        "L: number of layers of each network (measure=average: of all networks together)",
        100_000,
        minimum=1,
    )
    chains: int = parameter(
        "number of independent networks (replicates) for each width and gamma",
        32,
        minimum=1,
        maximum=MOST,
    )
    law: str = parameter(
        "distribution of the weights; asymmetric: uniform on [0, 2 sqrt(3)], so that all have"
        " one sign",
        "gaussian",
        choices=LAWS,
    )
    engine: str = parameter(
        "method for the product of random weights and activations; direct: draw W and multiply;"
        " rotated: draw only the surviving directions (Gaussian weights); kernel: compiled for the"
        " CPU, rotated for Gaussian weights, else direct; auto: the fastest that is possible",
        "auto",
        choices=("auto", "kernel", "rotated", "direct"),
    )
    dtype: str = parameter("floating-point precision", "float64", choices=("float64", "float32"))
    tau: float = parameter("threshold of the soft rank (0 to 1)", 0.5, minimum=0, maximum=1)
    centred: bool = parameter(
        "whether batch normalization subtracts the mean; true needs engine=direct", False
    )
    samples: int | None = parameter("N: batch size (null: d)", None, minimum=1)
    columns: int | None = parameter(
        "K: number of columns of the activations with engine=kernel or rotated (null: 2 sqrt(d)"
        " + 4)",
        None,
        minimum=1,
    )
    burn_in: int | None = parameter(
        "number of layers before the first measurement (null: 300 + 10 / (gamma^2 sqrt(d)))",
        None,
        minimum=0,
    )
    stride: int | None = parameter(
        "layers per measurement (null: max(2, d / 16); measure=product: L / 200)", None, minimum=1
    )
    input_noise: float = parameter(
        "size of the noise that is added to the collinear inputs",
        1e-3,
        above=0,
        maximum=LARGEST_FACTOR,
    )
    draws: int = parameter(
        "number of pairs (W, -W) of random weight matrices over which the change of ||M||^2 is"
        " averaged",
        4_000,
        minimum=2,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protocol == "authors" and (reason := self._unlike_the_authors()):
            raise InputError(f"protocol=authors: {reason}. Use protocol=text")
        for setting in (f"measure={self.measure}", f"protocol={self.protocol}"):
            self.refuse(UNUSED.get(setting, set()) - {"draws"}, setting)
        self._check_engine()
        for width in self.widths:
            self._check_width(width)

    def engine_on(self, device: str) -> str:
        """Return the name of the engine that averages over depth.

        device: "cpu" or "cuda".
        """
        if self.engine != "auto":
            return self.engine
        fastest = "kernel" if device == "cpu" else "rotated"
        return "direct" if self._refused_by(fastest) else fastest

    def _unlike_the_authors(self) -> str | None:
        """Return in words why protocol=authors does not allow these parameters, else None."""
        if self.measure not in ("average", "spectrum"):
            return "figures 3a and 3b are measure=average and measure=spectrum"
        kind = self.law, self.dtype, self.centred
        if kind != ("gaussian", "float64", False) or inf in self.skips:
            return "Gaussian weights, float64, a skip connection, and no mean is subtracted"
        if self.measure == "average" and self.layers_of_chain() < EVERY:
            return f"every {EVERY}th layer is measured, and a network has {self.layers_of_chain()}"
        return None

    def _refused_by(self, engine: str) -> str | None:
        """Return in words why an engine cannot compute these parameters, or None if it can.

        engine: "kernel" or "rotated".
        """
        if self.law != "gaussian" and engine == "rotated":
            return f"law={self.law}: engine {engine} needs law=gaussian"
        if self.law in REGISTERED.get("law", {}):
            return f"law={self.law}: engine {engine} knows the program's distributions only"
        if self.centred:
            return f"centred=true: engine {engine} does not subtract the mean"
        if self.dtype != "float64":
            return f"dtype={self.dtype}: engine {engine} needs dtype=float64"
        return None

    def _check_engine(self) -> None:
        """Raise InputError for an engine or a gamma that cannot measure what `measure` selects."""
        fast = self.measure == "average" and self.engine in ("kernel", "rotated")
        if fast and (reason := self._refused_by(self.engine)):
            raise InputError(f"{reason}. Use engine=direct")
        if self.measure == "input_rank" and self.engine not in ("auto", "rotated"):
            raise InputError(
                "measure=input_rank needs engine=rotated: with engine=direct rounding errors"
                " raise the rank of the input"
            )
        if self.measure == "input_rank" and (reason := self._refused_by("rotated")):
            raise InputError(reason)
        if self.centred and self.samples == 1:
            raise InputError("samples=1: centred=true makes a single sample zero")
        for skip in self.skips:
            if self.measure == "expansion" and skip > LARGEST_EXPANDED:
                raise InputError(
                    f"skips={skip}: gamma must be at most {LARGEST_EXPANDED:g} for"
                    " measure=expansion (Lemma 7)"
                )
            squared = self.measure in ("product", "expansion")
            if skip < (least := SMALLEST if squared else LOST[self.dtype]):
                raise InputError(
                    f"skips={skip} is below {least:.1g}: rounding would lose gamma W next to the"
                    f" skip connection, for measure={self.measure} and dtype={self.dtype}"
                )
            averaged = self.measure in ("average", "input_rank")
            if averaged and self.burn_in is None and skip * skip < SLOWEST:
                raise InputError(
                    f"skips={skip}: the network forgets its inputs only after 1 / gamma^2 layers."
                    " Give the number of layers before the first measurement as burn_in=..."
                )

    def _check_width(self, width: int) -> None:
        """Raise InputError for columns or a stride that do not fit a width."""
        needed = min(width, ceil(2 * sqrt(width)))
        if self.columns is not None and not needed <= self.columns <= width:
            raise InputError(
                f"columns={self.columns} does not fit width={width}: choose {needed} to {width}"
                " (up to 1.9 sqrt(width) directions of the input survive in deep layers)"
            )
        per_chain = self.layers_of_chain()
        if self.measure == "average" and self.stride_of(width) > per_chain:
            raise InputError(
                f"stride={self.stride_of(width)} for width={width} is above the {per_chain}"
                f" layers of a network (layers={self.layers} divided by chains={self.chains})"
            )

    def layers_of_chain(self) -> int:
        """Return the number of averaged layers of one network: `layers` / `chains`, rounded up."""
        return ceil(self.layers / self.chains)

    def stride_of(self, width: int) -> int:
        """Return the number of layers from one measurement to the next at a width.

        The default is far below the autocorrelation time.
        """
        return self.stride if self.stride is not None else max(2, width // 16)

    def burn_in_of(self, width: int, skip: float) -> int:
        """Return the number of layers before the first measurement, for a width d and a gamma.

        skip: gamma. The default is 300 + `10 / (gamma^2 sqrt(d))`. According to Lemma 7 one layer
        moves `||M||_F^2`, which is about `d^1.5`, by up to `2 gamma^2 d^2`. The network therefore
        forgets its initial state within about `1 / (gamma^2 sqrt(d))` layers.
        """
        if self.burn_in is not None:
            return self.burn_in
        return 300 if isinf(skip * skip) else 300 + ceil(10 / (skip**2 * sqrt(width)))

    def samples_of(self, width: int) -> int:
        """Return the batch size N at a width d; the default is N = d, as in the paper."""
        return self.samples if self.samples is not None else width

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "spectrum d=8 gamma=inf"."""
        points = [f"d={width} gamma={skip}" for width in self.widths for skip in self.skips]
        blocks = range(self.chains)  # at most one stack per chain
        names = {
            "average": [f"average {point} block={block}" for point in points for block in blocks],
            "spectrum": [f"spectrum {point}" for point in points],
            "product": [f"product {p} {self.law}" for p in points] + [f"gap {p}" for p in points],
            "expansion": [
                f"{n} d={d}" for n in ("invariant law", "expansion") for d in self.widths
            ],
            "input_rank": [f"input rank {point}" for point in points],
        }
        authors = [f"M {point}" for point in points] if self.protocol == "authors" else []
        return (*names[self.measure], *authors)
