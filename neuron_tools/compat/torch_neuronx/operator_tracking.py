"""Which operators ran on the device, as TorchNeuron's tests and users ask."""

from __future__ import annotations

from neuron_tools.device import native
from neuron_tools.frontends.torch_lowering.intrinsics import unlowered_operators


def clear_op_tracking() -> None:
    """Forget which operators ran; from the first call on, they are kept, which costs each a little."""
    native.clear_operator_log()


def get_executed_ops() -> list[str]:
    """Operators that ran on the device since `clear_op_tracking`.

    Returns:
        Names with and without that of the overload ("aten::add", "aten::add.Tensor"), sorted. What is made of
        other operators ("aten::linear") is among them, and so are these.
    """
    fallen_back = set(get_fallback_ops())
    return [name for name in native.logged_operators() if name not in fallen_back]


def get_fallback_ops() -> list[str]:
    """Operators that ran since `clear_op_tracking` and that the compiler found without a native lowering.

    Returns:
        Names as of `get_executed_ops`. Only what is compiled is known: under a capture, or traced.
    """
    unlowered = unlowered_operators()
    return [name for name in native.logged_operators() if name.split(".")[0] in unlowered]
