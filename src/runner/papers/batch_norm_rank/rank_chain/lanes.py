"""Eight numbers as one value of code that numba compiles, lane by lane.

A value of the type `Lanes` has the operators of a number. `load` and `store` move eight numbers
from and to arrays (rows, columns, LANES). This file has no function that is compiled for itself.
numba's cache does not watch it: after a change, `kernel.OF_LANES` must change, as a test says.
"""

import operator
from collections.abc import Callable
from functools import partial
from inspect import unwrap
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from runner.papers.batch_norm_rank.rank_chain.engines import LANES


class Lanes(types.Type):
    """Type of eight numbers of one `dtype`, in compiled code."""

    def __init__(self, dtype: types.Number):
        super().__init__(f"{dtype}x{LANES}")
        self.dtype = dtype


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, LANES))


doubles, singles, words = Lanes(types.float64), Lanes(types.float32), Lanes(types.uint32)


def _splat(builder, value, lanes):
    """Return `value` in every lane."""
    vector = ir.Constant(lanes, ir.Undefined)
    for lane in range(LANES):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


def _define(function: Callable, real: str | None, integer: str | None) -> None:
    """Define `function(a, b)` lane by lane as an LLVM instruction for reals or integers.

    A single number is copied to every lane.
    """

    @type_callable(function)
    def result(context):
        def typer(a, b):
            kind = a if isinstance(a, Lanes) else b
            return kind if isinstance(kind, Lanes) else None

        return typer

    def lower(context, builder, signature, arguments):
        kind, both = signature.return_type, []
        for value, source in zip(arguments, signature.args, strict=True):
            if source != kind:
                number = context.cast(builder, value, source, kind.dtype)
                value = _splat(builder, number, context.get_value_type(kind))
            both.append(value)
        return getattr(builder, integer if kind == words else real)(*both)

    for signature in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(function, *signature)(lower)


for _function, _real, _integer in (
    (operator.add, "fadd", "add"),
    (operator.sub, "fsub", "sub"),
    (operator.mul, "fmul", "mul"),
    (operator.truediv, "fdiv", None),
    (operator.and_, None, "and_"),
    (operator.or_, None, "or_"),
    (operator.xor, None, "xor"),
    (operator.lshift, None, "shl"),
    (operator.rshift, None, "lshr"),
):
    _define(_function, _real, _integer)


def _function_of_one(build: Callable, target: Lanes | None = None) -> Callable:
    """Return a compiled function of one value; `build(builder, x, type)` makes its LLVM code.

    target: type of the result, by default the type of the argument.
    """

    @intrinsic
    def function(typing, x):
        kind = target or x

        def codegen(context, builder, signature, arguments):
            return build(builder, arguments[0], context.get_value_type(kind))

        return kind(x), codegen

    return function


def _square_root(builder, x, lanes):
    """Return the square root, correctly rounded."""
    name = f"llvm.sqrt.v{LANES}{lanes.element.intrinsic_name}"
    function = builder.module.globals.get(name)
    function = function or ir.Function(builder.module, ir.FunctionType(lanes, [lanes]), name)
    return builder.call(function, [x])


def _indicator(relation: str) -> Callable:
    """Return a compiled function: one in the lanes where `x` has a relation to zero, else zero."""

    def build(builder, x, lanes):
        zero = ir.Constant(lanes, [0.0] * LANES)
        return builder.uitofp(builder.fcmp_ordered(relation, x, zero), lanes)

    return _function_of_one(build)


bits = _function_of_one(ir.IRBuilder.bitcast, words)
from_bits = _function_of_one(ir.IRBuilder.bitcast, singles)
signed = _function_of_one(ir.IRBuilder.sitofp, singles)
widen = _function_of_one(ir.IRBuilder.fpext, doubles)
splat = _function_of_one(_splat, doubles)
root = _function_of_one(_square_root)
not_negative, is_zero = _indicator(">="), _indicator("==")


def _pointer(context, builder, signature, arguments):
    """Return a pointer to all lanes of `array[i, j]`, and its alignment in bytes."""
    (kind, *_), (array, i, j, *_) = signature.args, arguments
    struct = context.make_array(kind)(context, builder, array)
    offset = builder.add(builder.mul(i, builder.extract_value(struct.shape, 1)), j)
    lanes = context.get_value_type(Lanes(kind.dtype)).as_pointer()
    pointer = builder.gep(builder.bitcast(struct.data, lanes), [offset])
    return pointer, kind.dtype.bitwidth // 8


@intrinsic
def load(typing, array, i, j):
    """Return the eight numbers `array[i, j]` of an array with the shape (rows, columns, LANES)."""

    def codegen(context, builder, signature, arguments):
        pointer, alignment = _pointer(context, builder, signature, arguments)
        return builder.load(pointer, align=alignment)

    return Lanes(array.dtype)(array, types.intp, types.intp), codegen


@intrinsic
def store(typing, array, i, j, value):
    """Set the eight numbers `array[i, j]` of an array (rows, columns, LANES) to `value`."""

    def codegen(context, builder, signature, arguments):
        pointer, alignment = _pointer(context, builder, signature, arguments)
        builder.store(arguments[3], pointer, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), codegen


def compiled(function: Callable, **options: Any) -> Callable:
    """Compile a function for compiled callers, without checks of bounds and of division by zero."""
    return numba.njit(
        error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, **options
    )(unwrap(function))


inlined = partial(compiled, inline="always")
"""Compile a short function into the code of its callers."""
