"""A CPU that pretends to be a GPU, for runs with `device=cuda:0` without a GPU.

Tensors on CUDA stay in the host's memory and only claim to be on CUDA. Errors are raised as by
CUDA: for operands on two devices, views of CUDA tensors by NumPy, and generators of another device.
Copies from or to the host are errors while a CUDA graph is captured. The CPU does all arithmetic,
so all bits are equal.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.ops import aten
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CUDA = torch.device("cuda", 0)

READS: list[str] = []
"""Operations by which the host has waited for numbers of the device."""

MOVING = {aten._to_copy, aten.copy_}
"""Operations that may have tensors on two devices."""

READING = {aten._local_scalar_dense, aten.nonzero, aten.equal, aten.is_nonzero}
"""Operations that give the host numbers, or a shape that depends on numbers."""

CAPTURES: list["_Graph"] = []
"""The graph that is being captured, if there is one."""

COMPUTED: list[OpOverload] = []
"""Operations of the device that the CPU is computing."""

INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
"""Operations whose indices may be on the CPU while all other operands are on CUDA."""


class _Claiming(Tensor):
    """A tensor that claims to be on CUDA; its numbers are in `held`, on the CPU.

    For torch it is on the device `meta`, where no operation finds numbers.
    """

    held: Tensor
    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> "_Claiming":
        shape, dtype = held.shape, held.dtype
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        return Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device="meta", **layout)

    def __init__(self, held: Tensor) -> None:
        self.held = held

    def numpy(self) -> None:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def tolist(self) -> list:
        return self.cpu().tolist()

    def new_tensor(self, numbers: Any) -> Tensor:
        return torch.tensor(numbers, dtype=self.dtype, device=CUDA)

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _operate(operation, args, kwargs or {})


class _Creating(TorchDispatchMode):
    """Mode that also passes operations with CPU tensors, or no tensors, to `_operate`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the alternative takes ten seconds to import

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return _operate(operation, args, kwargs or {})


class _Recording(TorchDispatchMode):
    """Mode that refuses operations that a graph would not repeat: changes of a CPU tensor."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        on_cpu = any(map(_on_cpu, _tensors((args, kwargs or {}))))
        if operation._schema.is_mutable and on_cpu and not COMPUTED:
            raise RuntimeError(f"{operation} on the CPU is no part of the graph")
        return operation(*args, **(kwargs or {}))


class _Watching(TorchFunctionMode):
    """Mode that handles calls about CUDA; all other calls are unchanged."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not any(map(_of_cuda, tree_leaves((args, kwargs)))):
            return function(*args, **kwargs)
        with _Creating():
            if function in (torch.tensor, torch.as_tensor):  # dispatch modes do not see the device
                return function(*args, **kwargs | {"device": None}).to(CUDA)
            return function(*args, **kwargs)


def _of_cuda(value: Any) -> bool:
    return isinstance(value, _Claiming) or (
        isinstance(value, torch.device) and value.type == "cuda"
    )


def _operate(operation: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return the operation's result, computed on the CPU, with the device that CUDA would give."""
    tensors = _tensors((args, kwargs))
    on_cuda = any(isinstance(each, _Claiming) for each in tensors)
    if on_cuda and operation.overloadpacket not in MOVING:
        _require_one_device(operation, [*args, *kwargs.values()])
    if kwargs.get("device") is not None:
        to_host = on_cuda and torch.device(kwargs["device"]).type == "cpu"
        READS.extend([str(operation)] * to_host)
        on_cuda = torch.device(kwargs["device"]).type != "cpu"
        kwargs = kwargs | {"device": torch.device("cpu")}
    if on_cuda and any(isinstance(each, torch.Generator) for each in tree_leaves((args, kwargs))):
        raise RuntimeError(f"Expected a 'cuda' device type for generator of {operation}")
    if on_cuda and operation.overloadpacket in READING:
        READS.append(str(operation))
    if CAPTURES:
        copies = operation.overloadpacket in MOVING and any(map(_on_cpu, tensors))
        if len(READS) > CAPTURES[-1].reads or copies:
            raise RuntimeError(f"operation not permitted when stream is capturing: {operation}")
        CAPTURES[-1].note(tensors)
    given = {id(_held(each)): each for each in tensors}

    def claimed(result: Any) -> Any:
        if not isinstance(result, Tensor):
            return result
        if id(result) in given:  # the tensor was changed in place
            return given[id(result)]
        return _Claiming(result) if on_cuda else result

    args, kwargs = tree_map(_held, args), tree_map(_held, kwargs)
    COMPUTED.append(operation)
    try:
        found = operation(*args, **kwargs)
    finally:
        COMPUTED.pop()
    if CAPTURES:
        CAPTURES[-1].calls.append((operation, args, kwargs, _tensors(found)))
    return tree_map(claimed, found)


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]


class _Graph:
    """A CUDA graph: its operations, which are repeated on the same tensors."""

    def __init__(self) -> None:
        self.reads, self.calls = len(READS), []
        self.found: dict[int, tuple[Tensor, Tensor]] = {}  # initial copy of each tensor

    def note(self, tensors: list[Tensor]) -> None:
        for each in map(_held, tensors):
            self.found.setdefault(id(each), (each, each.clone()))

    def replay(self) -> None:
        with torch.no_grad():
            for operation, args, kwargs, results in self.calls:
                again = _tensors(operation(*args, **kwargs))
                for result, new in zip(results, again, strict=True):
                    if result.data_ptr() != new.data_ptr():  # else a view, or changed in place
                        result.copy_(new)


@contextmanager
def _capturing(graph: _Graph, **_: Any) -> Iterator[None]:
    """Record the operations within the block, and restore all tensors."""
    CAPTURES.append(graph)
    try:
        with _Recording():
            yield
    finally:
        CAPTURES.pop()
        for tensor, before in reversed(graph.found.values()):
            if not torch.allclose(tensor, before, 0, 0, equal_nan=True):
                tensor.copy_(before)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, _Claiming) else value


def _require_one_device(operation: OpOverload, values: list[Any]) -> None:
    """Raise an error if one of the values is a CPU tensor; numbers (0-d) are allowed."""
    for value in values:
        if isinstance(value, list | tuple):
            of_cpu = operation.overloadpacket not in INDEXING and any(map(_on_cpu, value))
        else:
            of_cpu = _on_cpu(value) and value.ndim > 0
        if of_cpu:
            raise RuntimeError(f"Expected all tensors to be on the same device: {operation}")


def _on_cpu(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, _Claiming)


@contextmanager
def pretended_cuda() -> Iterator[None]:
    """Pretend one CUDA device, for this process and the threads that it starts."""
    submit = ThreadPoolExecutor.submit

    def submit_watched(pool: ThreadPoolExecutor, work: Callable, *args: Any) -> Future:
        def within(*args: Any) -> Any:
            with _Watching():
                return work(*args)

        return submit(pool, within, *args)

    about = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_name": lambda device: "pretended",
        "get_device_properties": lambda device: SimpleNamespace(total_memory=2**36),
        "max_memory_allocated": lambda device: 0,
        "reset_peak_memory_stats": lambda device: None,
        "empty_cache": lambda: None,
        "Stream": lambda device: SimpleNamespace(wait_stream=lambda other: None),
        "current_stream": lambda device: SimpleNamespace(wait_stream=lambda other: None),
        "stream": lambda stream: nullcontext(),
        "CUDAGraph": _Graph,
        "graph": _capturing,
    }
    with ExitStack() as patches:
        patches.enter_context(patch.multiple(torch.cuda, **about))
        patches.enter_context(patch.object(torch.version, "cuda", "12.8"))
        # An optimizer asks CUDA builds whether a graph is being captured.
        no_graph = {"current_accelerator": lambda check_available=False: None}
        patches.enter_context(patch.multiple(torch.accelerator, **no_graph))
        patches.enter_context(patch.object(torch.backends.cudnn, "version", lambda: 91002))
        patches.enter_context(patch.object(ThreadPoolExecutor, "submit", submit_watched))
        patches.enter_context(_Watching())
        yield
