"""`define_op`: one definition serves NumPy arrays, torch tensors, `torch.ops.roarfast.*` and `torch.compile`.

torch is never imported here by force: the ops are registered with `torch.library` as soon as torch is found to be
loaded, which is at `import roarfast` if it came first, and at the first call otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from roarfast import _backend
from roarfast._types import ArrayT, Numpy
from roarfast.ops._arrays import NUMPY, Arrays, UnusableTensor, require_memory

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeIs

R = TypeVar("R")  # what an op makes of tensors: a tensor, or several

_ops: list[Op[Any]] = []
_tensor_type: Any = None  # torch.Tensor once torch is loaded
_library: torch.library.Library | None = None  # keeps the registrations alive


class Op(Generic[R]):
    """A kernel-backed function. Made by `define_op`; called with arrays first, then plain values."""

    def __init__(self, name: str, schema: str, run: Callable[..., object], fake: Callable[..., R]) -> None:
        self.name = name
        self.schema = schema
        self._run = run
        self.fake = fake
        self.torch_op: Any = None
        self.torch_op_out: Any = None

    @overload
    def __call__(self: Op[torch.Tensor], first: ArrayT, /, *args: object, out: ArrayT | None = None) -> ArrayT: ...

    @overload
    def __call__(self: Op[tuple[torch.Tensor, ...]], first: ArrayT, /, *args: object) -> tuple[ArrayT, ...]: ...

    def __call__(self, *args: object, out: object = None) -> object:
        if not is_tensor(args[0]):
            return self.run(NUMPY, *args, out=out)
        if out is None:
            return self.torch_op(*args)
        if not is_tensor(out):
            raise TypeError(f"out must be a torch tensor like the input, got {type(out).__name__}")
        if out.requires_grad:
            raise ValueError("out must not require a gradient: what is written there has none")
        self.torch_op_out(*args, out)
        return out

    def run(self, xp: Arrays[Numpy] | Arrays[torch.Tensor], *args: object, out: object = None) -> Any:
        """Runs the op on arrays of `xp`."""
        _backend.apply_num_threads()
        try:
            return self._run(xp, *args, out=out)
        except UnusableTensor as error:
            raise ValueError(self._whose(error, args, out)) from None
        # What only a direct call of torch.ops.roarfast can have wrong:
        except KeyError as error:
            raise ValueError(f"roarfast::{self.name} has no option or dtype {error}") from None
        except OverflowError as error:
            raise ValueError(f"roarfast::{self.name}: a number is out of range: {error}") from None
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise
            raise RuntimeError(f"roarfast::{self.name}: {error}") from error
        except TypeError as error:
            if not str(error).startswith("expected "):  # the bindings', of calls with too few arguments
                raise
            raise ValueError(f"roarfast::{self.name}: a list of numbers has not the right length") from None

    def _whose(self, error: UnusableTensor, args: Sequence[object], out: object) -> str:
        """The message of an error with the name of the argument that it is about."""
        names = [part.split("=")[0].split()[-1] for part in self.schema.split("->")[0].strip(" ()").split(", ")]
        tensors = [(name, a) for name, a in zip((*names, "out"), (*args, out)) if is_tensor(a)]
        for name, a in tensors:
            try:
                require_memory(a)
            except UnusableTensor as found:
                return f"{name} must have memory, but {found}"
            if a.device.type not in ("cpu", "cuda"):
                return f"{name} must be on a CPU or CUDA device, got {a.device}"
        return one_device(tensors) or f"roarfast::{self.name}: {error}"

    def register(self, library: torch.library.Library, xp: Arrays[torch.Tensor]) -> None:
        """Registers `roarfast::<name>`, and `roarfast::<name>_out`, which writes to its last argument."""
        import torch

        parameters, result = (part.strip() for part in self.schema.split("->"))
        run = self.run

        def fake(*args: object) -> R:
            tensors = [(argument.name, a) for argument, a in zip(schema.arguments, args) if isinstance(a, torch.Tensor)]
            if refusal := one_device(
                tensors
            ):  # with one on "meta", torch comes here, and would return unwritten memory
                raise ValueError(refusal)
            return self.fake(*args)

        library.define(f"{self.name}{parameters} -> {result}", tags=(torch.Tag.pt2_compliant_tag,))
        for device in ("CPU", "CUDA"):
            library.impl(self.name, lambda *args: run(xp, *args, out=None), device)
        torch.library.register_fake(f"roarfast::{self.name}", fake, lib=library)
        self.torch_op = getattr(torch.ops.roarfast, self.name).default
        schema = self.torch_op._schema
        if result != "Tensor":
            return

        def run_out(*args: object) -> None:
            run(xp, *args[:-1], out=args[-1])

        def fake_out(*args: Any) -> None:
            fake(*args[:-1])
            if args[-1].device != args[0].device:
                raise ValueError(f"out must be on {args[0].device} like the input, got {args[-1].device}")

        name_out = f"{self.name}_out"
        library.define(f"{name_out}{parameters[:-1]}, Tensor(out!) out) -> ()", tags=(torch.Tag.pt2_compliant_tag,))
        for device in ("CPU", "CUDA"):
            library.impl(name_out, run_out, device)
        torch.library.register_fake(f"roarfast::{name_out}", fake_out, lib=library)
        self.torch_op_out = getattr(torch.ops.roarfast, name_out).default


def one_device(tensors: Sequence[tuple[str, torch.Tensor]]) -> str:
    """The refusal of named tensors on two devices; empty if they are on one."""
    for name, a in tensors[1:]:
        if a.device != tensors[0][1].device:
            return f"{tensors[0][0]} and {name} must be on one device, got {tensors[0][1].device} and {a.device}"
    return ""


def define_op(name: str, schema: str, run: Callable[..., object], fake: Callable[..., R]) -> Op[R]:
    """Defines an op.

    Args:
        name: The name under `torch.ops.roarfast`.
        schema: Its torch schema, as in `"(Tensor a, str border) -> Tensor"`. `mode` cannot be a parameter's name:
            torch's functionalisation passes an argument of that name.
        run: `run(xp, *args, out=None)`: checks nothing, allocates with `xp`, calls the kernel. `xp` is one of the
            adapters in `roarfast.ops._arrays`.
        fake: `fake(*args)`: an empty tensor of the right shape and dtype, for tracing.
    """
    op = Op(name, schema, run, fake)
    _ops.append(op)
    if _library is not None:
        op.register(_library, _torch_arrays())
    return op


def _torch_arrays() -> Arrays[torch.Tensor]:
    from roarfast.ops._arrays import TorchArrays  # torch, which may be missing

    return TorchArrays()


def register_torch() -> None:
    """Registers every op under `torch.ops.roarfast`. Runs by itself; call it to use those before any other call."""
    global _library, _tensor_type
    if _library is not None:
        return
    import torch

    _library = torch.library.Library("roarfast", "DEF")
    xp = _torch_arrays()
    for op in _ops:
        op.register(_library, xp)
    _tensor_type = torch.Tensor


def is_compiling() -> bool:
    """Whether torch.compile is tracing the call: its tensors have shapes, and no memory to look at."""
    return bool(sys.modules["torch"].compiler.is_compiling())


def is_tensor(a: object) -> TypeIs[torch.Tensor]:
    """Whether `a` is a torch tensor, without importing torch."""
    if _tensor_type is None:
        if isinstance(a, np.ndarray) or sys.modules.get("torch") is None:
            return False
        register_torch()
    return isinstance(a, _tensor_type)
