"""Find the quantities of any `torch.nn.Module` that gradient flow conserves.

Take a parameter T of the module and one axis of T. Let M be the matrix that has a row for each
index of this axis: the weights into (or out of) one neuron. All invariants of paper C have the form

    D = sum_k a_k M_k M_k^T,   a_k = 1 or -1,

for some parameters and axes of equal length. D = V^T V - U U^T of Theorem 1 has two terms. A bias b
adds the term b b^T (text after Lemma 3). Under gradient flow, dT/dt = -dR/dT, every term has an
exact rate of change. The function `find_invariants` computes these rates for many random losses of
the module's outputs. It returns all coefficients a for which the diagonal of dD/dt is zero under
all losses (Lemma 2). It also counts which other entries of D are constant (Theorem 1).
"""

import itertools
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scipy.linalg import null_space
from torch import Tensor, nn

from runner.papers.training_invariances import theory

TOLERANCE = 1e-9
"""Largest relative rate of change of a conserved quantity; rounding gives about 1e-15."""

ZERO = 1e-6
"""Smaller coefficients are rounding; it is at most 1e-10, coefficients are of order one."""

OF_ALL = re.compile(r"^(?:rows|columns) of (\S+)(?: \(\d+ channels\))?$")
"""The name of a matrix that has all entries of its parameter, whose name is the group."""

MOVED = 0.1
"""Random change of every weight, relative to its tensor: a bias of zero would hide its rate."""

Side = Callable[[Tensor], Float[Tensor, "c _"]]
"""Function from a parameter, or from its gradient, to M with a row for each neuron."""

Sides = dict[str, tuple[str, Side]]
"""Name of the parameter and function, by the name of the side: `rows of 0.weight`."""


@dataclass(frozen=True)
class Quantity:
    """A matrix D = sum of a M M^T of a module, and the rates at which gradient flow changes D.

    M is a matrix with a row for each of c neurons: the rows, the columns or the whole of a
    parameter. A rate is a norm over three random losses, divided by the largest norm that the sizes
    of weights and gradients allow (Cauchy-Schwarz). It is about 1e-15 for a conserved quantity, and
    at most one.
    """

    terms: dict[str, float]
    """Coefficients by side."""
    change: Float[Tensor, "c c"] = field(repr=False)
    """Sum over the losses of the squared rate of change of each entry of D."""
    largest: Float[Tensor, "c c"] = field(repr=False)
    """Sum over the losses of the square of the largest possible rate."""

    @property
    def neurons(self) -> int:
        """Return c."""
        return len(self.change)

    @property
    def entries(self) -> int:
        """Return the number of entries of D that gradient flow conserves, at most c^2."""
        return int((self.change <= TOLERANCE**2 * self.largest.max()).sum())

    @property
    def rate(self) -> float:
        """Return the rate of change of the diagonal of D."""
        return self.rate_of(torch.eye(self.neurons).to(self.change))

    @property
    def rate_of_all(self) -> float:
        """Return the rate of change of all of D."""
        return self.rate_of(torch.ones_like(self.change))

    def rate_of(self, part: Float[Tensor, "c c"]) -> float:
        """Return the rate of change of some entries of D. part: 1 at these entries, else 0."""
        return float(((self.change * part).sum() / (self.largest * part).sum()).sqrt())

    def __str__(self) -> str:
        terms = []
        for side, a in self.terms.items():
            times = "" if abs(a) == 1 else f"{abs(a):.3g} × "
            terms.append(f"{'−' if a < 0 else '+'} {times}{side}")
        return " ".join(terms).removeprefix("+ ")

    @property
    def conserved(self) -> str:
        """Return in words which part of D gradient flow conserves, as "diagonal of D"."""
        if self.rate > TOLERANCE:
            return "nothing"
        parts = {self.neurons: "diagonal of D", self.neurons**2: "all of D"}
        return parts.get(self.entries, "diagonal of D, some pairs")

    def matrix(self, module: nn.Module) -> Float[Tensor, "c c"]:
        """Return the matrix D for the current parameters of a module.

        module: the module that `find_invariants` examined, or a copy with other weights.
        """
        parameters, views = dict(module.named_parameters()), sides(module)
        M = {side: views[side][1](parameters[views[side][0]].detach()) for side in self.terms}
        return torch.stack([a * M[side] @ M[side].mT for side, a in self.terms.items()]).sum(0)


def sides(module: nn.Module) -> Sides:
    """Return for each trained parameter of a module the matrices with a row for each neuron.

    A key of the result names the matrix, as `rows of 0.weight`. The value is the parameter's name
    and the function that gives the matrix. For one parameter there are up to three kinds:

    - `rows`: a row for each output of the layer.
    - `columns`: a row for each input. If the layer reads several positions of c channels, a row for
      each channel is possible, too (Theorem 1, item 5).
    - `norm`: the whole parameter in one row (Lemma 3).

    A fused matrix has separate `rows` for each part: two parts before `nn.GLU`, three in
    `nn.MultiheadAttention`.
    """
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    channels = {p.shape[0]: 0 for p in trained.values() if p.ndim > 2}
    read = {*channels, *(p.shape[1] for p in trained.values() if p.ndim > 1)}
    found: Sides = {}
    for name, p in trained.items():
        found[f"norm of {name}"] = name, lambda T: T.reshape(1, -1)
        parts = next((n for n in (1, 2, 3) if len(p) / n in read), 1)
        for part in range(parts):
            place = f" (part {part + 1} of {parts})" if parts > 1 else ""
            found[f"rows of {name}{place}"] = name, partial(_rows, part=part, parts=parts)
        if p.ndim > 1:
            found[f"columns of {name}"] = name, lambda T: T.movedim(1, 0).flatten(1)
        for c in channels if p.ndim == 2 else ():
            if p.shape[1] > c and p.shape[1] % c == 0:
                by_channel = partial(theory.by_channel, channels=c)
                found[f"columns of {name} ({c} channels)"] = name, lambda T, f=by_channel: f(T).mT
    return found


def _rows(T: Tensor, part: int, parts: int) -> Float[Tensor, "c _"]:
    rows = T.chunk(parts)[part]
    return rows.reshape(len(rows), -1)


def exact_copy(module: nn.Module, stream: torch.Generator) -> nn.Module:
    """Return a copy of a module in float64, with slightly moved weights and smallest epsilon.

    Weights before batch norm are scale invariant only if epsilon is zero. The copy has epsilon
    1e-30 in all normalization layers. stream: draws the random moves of the weights.
    """
    copy = deepcopy(module).double()
    for part in copy.modules():
        if hasattr(part, "eps"):
            part.eps = 1e-30
    for p in copy.parameters():
        size = p.detach().square().mean().sqrt()
        noise = torch.randn(p.shape, generator=stream, dtype=p.dtype)
        with torch.no_grad():
            p += MOVED * torch.where(size > 0, size, 1.0) * noise.to(p.device)
    return copy


class _Rates:
    """Exact rates of change of all matrices M of a module, under random losses of its outputs.

    M: the matrices by name. diagonals: rates of diag(M M^T), one for each loss. moves: dM/dt under
    the last three losses. sizes: |M| |dM/dt| of the matrices that change.
    """

    def __init__(self, module: nn.Module, inputs: tuple[Tensor, ...], seed: int) -> None:
        stream = torch.Generator().manual_seed(seed)
        copy = exact_copy(module, stream)
        f = copy(*(x.double() if x.is_floating_point() else x for x in inputs))
        views, parameters = sides(copy), dict(copy.named_parameters())
        trained = {name: parameters[name] for name, _ in views.values()}
        self.M = {side: view(trained[name].detach()) for side, (name, view) in views.items()}
        self.diagonals: dict[str, list[Tensor]] = {side: [] for side in self.M}
        self.moves: list[dict[str, Tensor]] = []
        for _ in range(len(self.M) + 2):  # more losses than sides
            loss = torch.randn(f.shape, generator=stream, dtype=f.dtype).to(f.device)
            options = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
            gradients = torch.autograd.grad(f, list(trained.values()), loss, **options)
            of = dict(zip(trained, gradients, strict=True))
            self.moves = [*self.moves[-2:], {s: -view(of[n]) for s, (n, view) in views.items()}]
            for side, move in self.moves[-1].items():
                self.diagonals[side].append(2 * (self.M[side] * move).sum(1))
        sizes = {side: float(M.norm() * self.moves[-1][side].norm()) for side, M in self.M.items()}
        self.sizes = {
            s: size for s, size in sizes.items() if size > TOLERANCE * max(sizes.values())
        }

    def quantity(self, terms: dict[str, float]) -> Quantity:
        """Return the quantity D with its rates of change under the last losses.

        terms: coefficients of the matrices by name.
        """
        change, scale = torch.zeros(2, dtype=torch.float64)
        for move in self.moves:
            rate, largest = torch.zeros(2, dtype=torch.float64)
            for side, a in terms.items():
                gram = a * move[side] @ self.M[side].mT
                bound = abs(a) * move[side].norm(dim=1)[:, None] * self.M[side].norm(dim=1)
                rate, largest = rate + gram + gram.mT, largest + bound + bound.mT
            change, scale = change + rate.square(), scale + largest.square()
        return Quantity(terms, change, scale)

    def conserved(self, of_size: list[str]) -> list[Quantity]:
        """Return all quantities with a conserved diagonal that combine the given matrices.

        of_size: names of matrices with equally many rows.
        """
        if not of_size:
            return []
        size = np.array([[self.sizes[side]] for side in of_size])
        A = np.stack([torch.cat(self.diagonals[side]).cpu() for side in of_size], 1) / size.T
        null = null_space(np.linalg.qr(A, mode="r"), rcond=TOLERANCE) / size
        if not null.size:
            return []
        found = []
        for row in sorted(few_terms(null), key=lambda a: float(np.linalg.norm(a * size[:, 0]))):
            a = {s: float(x) for s, x in zip(of_size, row, strict=True) if x}
            first, *_ = ordered = sorted(a, key=lambda side: not side.startswith("columns"))
            found.append(self.quantity({s: a[s] * (1 if a[first] > 0 else -1) for s in ordered}))
        return found


def few_terms(columns: Float[np.ndarray, "n k"]) -> list[Float[np.ndarray, " n"]]:
    """Return the basis of a space whose vectors have few nonzero coefficients.

    columns: k independent vectors that span the space. The basis depends on the space alone: the
    rounding of the factorization that gave the columns does not choose it. First comes the reduced
    row echelon form. Then a multiple of one vector is subtracted from another one wherever this
    leaves fewer nonzero coefficients.
    """
    basis = [_plain(row) for row in echelon(np.linalg.qr(columns)[0].T)[0]]
    pairs = [*itertools.permutations(range(len(basis)), 2)]
    before = np.inf
    while (terms := np.count_nonzero(basis)) < before:
        before = terms
        for one, other in pairs:
            basis[one] = _shorter(basis[one], basis[other])
    return basis


def echelon(matrix: Float[np.ndarray, "k n"]) -> tuple[Float[np.ndarray, "k n"], list[int]]:
    """Return the reduced row echelon form of a matrix, and the columns of its pivots.

    Entries up to ZERO are zero: the rows have a norm of order one.
    """
    rows, pivots = matrix.copy(), list[int]()
    for column in range(rows.shape[1]):
        top = len(pivots)
        if top == len(rows):
            break
        row = top + int(abs(rows[top:, column]).argmax())  # any other row gives the same form
        if abs(rows[row, column]) > ZERO:
            rows[[top, row]] = rows[[row, top]]
            rows[top] /= rows[top, column]
            others = np.arange(len(rows)) != top
            rows[others] -= np.outer(rows[others, column], rows[top])
            pivots.append(column)
    return rows, pivots


def _shorter(
    row: Float[np.ndarray, " n"], other: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return row minus the multiple of other that leaves the fewest coefficients, or row."""
    common = np.flatnonzero(row * other)
    differences = row - np.outer(row[common] / other[common], other)
    counts = (abs(differences) > ZERO * abs(row).max()).sum(1)
    is_shorter = counts.min(initial=len(row)) < np.count_nonzero(row)
    return _plain(differences[counts.argmin()]) if is_shorter else row


def _plain(row: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return a multiple of a vector with integers, or else with the largest coefficient one."""
    row = row / abs(row).max()
    row = np.where(abs(row) > ZERO, row, 0)
    multiple = row / abs(row[row != 0]).min()
    if (abs(multiple - multiple.round()) < ZERO).all():
        return multiple.round()
    return np.where(abs(abs(row) - 1) < ZERO, row.round(), row)


def _not_implied(norms: list[str], found: list[Quantity]) -> list[str]:
    """Return the norms without one for each trace of a quantity that is a sum of norms.

    norms: names of norms. The first rows of each quantity are left out if possible.
    """
    traces, firsts = [], {}
    for quantity in found:
        trace = dict.fromkeys(norms, 0.0)
        of_norms = [(OF_ALL.sub(r"norm of \1", s), s, a) for s, a in quantity.terms.items()]
        if all(norm in trace for norm, _, _ in of_norms):
            for norm, _, a in of_norms:
                trace[norm] += a
            traces.append(trace)
            firsts |= dict([(n, 0) for n, side, _ in of_norms if side.startswith("rows")][:1])
    order = [*(firsts | dict.fromkeys(norms))]
    rows = np.array([[trace[norm] for norm in order] for trace in traces]).reshape(-1, len(order))
    implied = {order[pivot] for pivot in echelon(rows)[1]}
    return [norm for norm in norms if norm not in implied]


def find_invariants(module: nn.Module, *inputs: Tensor, seed: int = 0) -> list[Quantity]:
    """Return the invariants of a module's gradient flow as a list of quantities.

    - module: a module that returns one tensor. The module does not change. Its mode, training or
      evaluation, matters.
    - inputs: a sample batch, the arguments of the module.
    - seed: seed of the random losses, and of a small random change of the weights.

    The quantities are matrices D, see `Quantity`. Quantities with a conserved diagonal come first.
    A norm is listed only if the traces of other quantities do not give it. At the end come
    controls, which need not be conserved. A control combines the rows of a matrix with the columns
    of the next matrix of equal length. It is listed if no other quantity contains these rows.

    The cost is one backward pass for each matrix that `sides` returns.
    """
    rates = _Rates(module, inputs, seed)
    norms = [side for side in rates.sizes if side.startswith("norm")]
    neurons = {side: len(rates.M[side]) for side in rates.sizes if side not in norms}
    found: list[Quantity] = []
    for c in {c: 0 for c in neurons.values() if c > 1}:
        found += rates.conserved([side for side in neurons if neurons[side] == c])
    taken = {side for quantity in found for side in quantity.terms}
    found += rates.conserved(_not_implied(norms, found))
    for index, side in enumerate(neurons):
        later = (s for s in [*neurons][index:] if s.startswith("columns") and s != side)
        columns = next((s for s in later if neurons[s] == neurons[side]), "")
        is_free = side.startswith("rows") and side not in taken and rates.M[side].shape[1] > 1
        if is_free and columns:
            own = [s for s in (side, side.replace("weight", "bias")) if s in neurons]
            found.append(rates.quantity({columns: 1} | dict.fromkeys(own, -1)))
    return found


def invariants_table(module: nn.Module, *inputs: Tensor, seed: int = 0) -> pd.DataFrame:
    """Return the quantities of `find_invariants` as a table.

    The columns are `quantity` (the formula of D), `conserved` (the conserved part of D in words),
    and the numbers of the class `Quantity`. module, inputs, seed: as in `find_invariants`.
    """
    found = find_invariants(module, *inputs, seed=seed)
    numbers = ("neurons", "entries", "rate", "rate_of_all")
    return pd.DataFrame(
        {"quantity": str(q), "conserved": q.conserved}
        | {name: getattr(q, name) for name in numbers}
        for q in found
    )
