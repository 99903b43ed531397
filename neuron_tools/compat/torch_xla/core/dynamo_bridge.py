"""The name by which PyTorch finds `torch_xla._dynamo.dynamo_bridge`."""

from .._dynamo.dynamo_bridge import extract_compiled_graph  # noqa: TID252  # found as torch_xla

__all__ = ["extract_compiled_graph"]
