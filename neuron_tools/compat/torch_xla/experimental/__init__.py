"""`torch_xla.experimental`: eager mode, in which each operation is a graph of its own."""

from neuron_tools.frontends.torch_xla.execution import eagerly, is_eager, set_eager

is_eager_mode = is_eager
eager_mode_context = eagerly


def eager_mode(enable: bool) -> None:
    """Run each operation at once from now on, but for functions of `torch_xla.compile`; or not any more."""
    set_eager(enable)


__all__ = ["eager_mode", "eager_mode_context", "is_eager_mode"]
