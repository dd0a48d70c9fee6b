"""The papers' formulas accept numpy arrays, tables of pandas, integers and mixed precisions."""

from dataclasses import fields, is_dataclass
from inspect import isfunction, signature

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from runner.core.arrays import as_tensors, takes_arrays
from runner.core.errors import InputError
from runner.papers.batch_norm_rank import measures
from runner.papers.batch_norm_rank import theory as ranks
from runner.papers.bottleneck_structure import networks, spectra
from runner.papers.bottleneck_structure import theory as bottleneck
from runner.papers.norm_tuning import network as layers
from runner.papers.norm_tuning import solvers, theorem_1
from runner.papers.norm_tuning import theory as constructions
from runner.papers.training_invariances import losses
from runner.papers.training_invariances import theory as invariances

MODULES = (ranks, measures, bottleneck, spectra, networks, constructions, theorem_1, solvers,
           layers, losses, invariances)  # fmt: skip

STREAM = torch.Generator().manual_seed(0)


def draw(*shape: int) -> Tensor:
    """Return numbers that float32 has, too."""
    return torch.randn(*shape, generator=STREAM).double()


H, A, B, SQUARE, X = draw(3, 4, 6), draw(4, 4), draw(4, 4), draw(3, 4, 4), draw(5, 3)
M = H @ H.mT / 6
NETWORK = networks.Network([draw(6, 3), draw(6, 6), draw(2, 6)], [draw(6), draw(6), draw(2)])
AT_X = networks.differentiate(NETWORK, X)
J = AT_X.jacobian
W1, W2, W = draw(9, 3), draw(3, 9), draw(3, 3)
TARGET = layers.relu_network([draw(3, 3), draw(2, 3)], [draw(3), draw(2)])
DEEP = [constructions.DeepWeights((draw(3, 3),) * 3, (draw(3, 1),) * 3, draw(3, 3)),
        constructions.DeepWeights((draw(2, 2),) * 3, (draw(2, 1),) * 3, draw(2, 2))]  # fmt: skip
LOW = layers.relu_network([(8 * draw(3, 1)).round() @ (8 * draw(1, 3)).round()] * 2, [draw(3)] * 2)
D, ONE = A + A.mT, draw(1, 4)
TRACE, EXCESS, LOG = draw(5).abs(), draw(1)[0], draw(5)

CASES = {
    ranks.orthogonality_gap: (draw(3).abs(), 6),
    **dict.fromkeys([ranks.second_moment, ranks.batch_norm, ranks.rank_bound], (H,)),
    ranks.soft_rank: (H, 0.5),
    ranks.count_above: (M, 0.5),
    **dict.fromkeys([ranks.trace, ranks.regularity_terms, ranks.frobenius_change], (M,)),
    ranks.frobenius_change_of_spectrum: (draw(3, 4),),
    **dict.fromkeys([measures.ranks, measures.singular_values, measures.root_mean_square], (H,)),
    bottleneck.log_pseudo_determinant: (H, 2),
    bottleneck.representation_cost: (H, 5),
    bottleneck.corrections: (A, 2),
    bottleneck.imbalance: (NETWORK,),
    bottleneck.bottleneck_frames: (NETWORK, AT_X, 1),
    bottleneck.bottleneck_distance: (NETWORK, AT_X, 1),
    bottleneck.squared_inputs: (NETWORK, X),
    bottleneck.ntk_trace: (NETWORK, AT_X, X),
    bottleneck.activation_bound: (TRACE, EXCESS, LOG, 2),
    bottleneck.representation_tail: (NETWORK, X, 1),
    bottleneck.negative_shares: (NETWORK, X),
    bottleneck.representation_bound: (TRACE, EXCESS.abs() + 9, LOG, 2, 3),
    bottleneck.ntk_mixed_derivative: (AT_X,),
    bottleneck.narrowness_bound: (J, 3),
    bottleneck.ntk_norm: (NETWORK, AT_X, X),
    bottleneck.active_segment: (NETWORK, X, X / 8),
    bottleneck.segment_bound: (J, X, 2 * X, 3),
    networks.differentiate: (NETWORK, X),
    networks.Network.activations: (NETWORK, X),
    networks.Network.parameter_norm: (NETWORK,),
    networks.Network.cost: (NETWORK, X, draw(5, 2)),
    networks.Network.traced: (NETWORK, X),
    spectra.bottleneck_rank: ([draw(3).abs(), draw(4).abs()],),
    spectra.jacobian_ranks: (J,),
    spectra.ranks: (NETWORK, AT_X),
    spectra.spectra: (NETWORK,),
    **dict.fromkeys([spectra.threshold_rank, spectra.gap_rank], (draw(4).abs(),)),
    constructions.wide_layer: (W1, W2, W, draw(3), 1.0),
    constructions.wide: (TARGET, [(W1, W2), (draw(6, 3), draw(2, 6))]),
    constructions.factorize: (LOW, 2),
    constructions.deep: (TARGET, DEEP),
    constructions.structural_rank: ((W1 * (W1 > 0)), W2),
    constructions.cut_off_units: (W1, W2),
    theorem_1.pseudo_inverse: (W1, W2, [W, W + 1]),
    theorem_1.row_norms: (H,),
    theorem_1.size_of: (draw(3).abs(),),
    theorem_1.set_shifts: (W1, W2, draw(9, 1), 1.0, draw(3, 1)),
    solvers.solve_scales: (W1, W2, W),
    solvers.structured_lsmr: (draw(20, 3), draw(3, 20), W),
    layers.Network.__call__: (TARGET, X),
    layers.relu_network: ([W, W], [draw(3), draw(3)]),
    layers.truncate: (TARGET, 1),
    layers.agreement: (X, X + 0.5 * draw(5, 3)),
    losses.log_losses: (draw(2, 4), "logistic"),
    invariances.matrix_invariant: (A, B),
    invariances.convolution_incoming: (draw(3, 2, 2, 2),),
    invariances.convolution_outgoing: (draw(3, 2, 2, 2),),
    invariances.by_channel: (draw(3, 6), 2),
    invariances.residual_incoming: (A, B),
    invariances.residual_outgoing: (A, B),
    invariances.same_pattern: (draw(5, 4),),
    invariances.noninvariance_rate: (draw(5, 4), draw(5, 4), draw(5, 4)),
    invariances.squared_norm: (H,),
    invariances.squared_operator_norm: (H,),
    invariances.alignment: (tuple(torch.linalg.svd(A)), tuple(torch.linalg.svd(B))),
    invariances.finite_time_bound: (ONE.square().sum(), [D, D], [1, 1, 1], [0 * EXCESS] * 3),
    invariances.residual_offset: (D,),
    invariances.remainder: (H, 2),
    invariances.last_remainder_bound: (H,),
    invariances.remainder_bounds: ([D, D], ONE.square().sum(), 2),
}

WITHOUT_ARRAYS = {
    theorem_1.khatri_rao,  # has a result of numpy for arrays, as mpmath's arithmetic needs
    constructions.wide_weights, constructions.deep_weights,  # only read shapes
    networks.torch_module,  # reads a run's stored tensors
    measures.ranks_by_layer, measures.last_hidden,  # take the inputs of a study's networks
}  # fmt: skip


def leaves(value) -> list:
    """Return the numbers in a result, in order."""
    if isinstance(value, Tensor | np.ndarray):
        return [np.asarray(value, dtype=float)]
    if is_dataclass(value):
        return leaves([getattr(value, item.name) for item in fields(value)])
    if isinstance(value, dict):
        return leaves([*value.values()])
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value, dtype=float)] if isinstance(value, float | int | np.number) else []


def mapped(value, change):
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if is_dataclass(value):
        copy = object.__new__(type(value))  # without the tests' check of types
        for item in fields(value):
            object.__setattr__(copy, item.name, mapped(getattr(value, item.name), change))
        return copy
    return value


def first_in_float32(values):
    """Return the values with every other tensor in float32, beginning with the first."""
    count = iter(range(1000))
    return mapped(values, lambda t: t if next(count) % 2 else t.float())


@pytest.mark.parametrize("function", CASES, ids=lambda f: f"{f.__module__[14:]}.{f.__qualname__}")
def test_a_formula_accepts_arrays_and_mixed_precisions(function):
    values = CASES[function]
    expected = leaves(function(*values))
    assert expected
    for given in (mapped(values, lambda t: t.numpy()), first_in_float32(values)):
        found = leaves(function(*given))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_every_formula_of_tensors_is_tried():
    public = {
        function
        for module in MODULES
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    }
    takes = {f for f in public if "Tensor" in str(signature(f)) or "Network" in str(signature(f))}
    results = {f for f in takes if "Tensor" not in str([*signature(f).parameters.values()])
               and "Network" not in str([*signature(f).parameters.values()])}  # fmt: skip
    assert takes - results - WITHOUT_ARRAYS <= {*CASES}


def test_weights_with_gradients_are_solved():
    W = torch.nn.Parameter(W1.float())
    assert torch.equal(solvers.solve_scales(W, W2, W2 @ W1).gamma,
                       solvers.solve_scales(W1, W2, W2 @ W1).gamma)  # fmt: skip
    assert ranks.rank_bound(torch.nn.Parameter(H)).requires_grad, "formulas are differentiable"


def test_tensors_of_one_dtype_are_passed_as_they_are():
    same = takes_arrays()(lambda *values, **named: (values, named))
    for dtype in (torch.float32, torch.float64):
        a, b = torch.ones(2, dtype=dtype), [torch.zeros(3, dtype=dtype)]
        (x, y, n), named = same(a, b, 3, c=a)
        assert x is a and y is b and n == 3 and named["c"] is a
    (x, y), _ = same(torch.arange(2), torch.ones(2))
    assert x.dtype == y.dtype == torch.float64, "integers are float64"


def test_a_table_is_an_array_and_text_is_refused():
    assert torch.equal(ranks.trace(pd.DataFrame(A.numpy())), ranks.trace(A))
    big = np.arange(4, dtype=">f8")[::-1].reshape(2, 2)
    assert ranks.trace(big) == 3, "also with another byte order and negative steps"
    with pytest.raises(InputError, match="give real numbers"):
        ranks.trace(np.array([["a", "b"], ["c", "d"]]))
    with pytest.raises(InputError, match="complex"):
        ranks.trace(A.to(torch.complex128))
    numbers = np.array([1, None], dtype=object)
    with pytest.raises(InputError, match="give real numbers"):
        as_tensors(numbers)
