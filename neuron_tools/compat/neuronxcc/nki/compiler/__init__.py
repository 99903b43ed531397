"""`neuronxcc.nki.compiler`."""

from neuron_tools.nki.compiler_hints import (
    allocation_scope,
    enable_stack_allocator,
    force_auto_alloc,
    multi_buffer,
    no_reorder,
    skip_middle_end_transformations,
)
from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.placement import psum, sbuf

__nki_names__ = True
__all__ = [
    "allocation_scope", "enable_stack_allocator", "force_auto_alloc", "multi_buffer", "no_reorder", "psum",
    "sbuf", "skip_middle_end_transformations",
]  # fmt: skip
__getattr__ = missing_name("neuronxcc.nki.compiler", "ncompiler", globals())
