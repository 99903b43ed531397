"""Modules and operations to Programs for one core, through the user's compile cache and compiler options."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

from neuron_tools.compiler.flags import parse_flags
from neuron_tools.compiler.ready_program import ready_programs
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff, NeffError
from neuron_tools.neff.cache import CompileCache, cache_of_user
from neuron_tools.records.kernel_source import with_kernels

if TYPE_CHECKING:
    from neuron_tools.compiler import hlo
    from neuron_tools.records.executable import Executable
    from neuron_tools.records.program import Program

LARGEST_KEPT_BYTES = 256 * 2**20
"""Tables of a Program beyond which packing it costs more than it saves."""
_OWN_OPERATORS = ("aten::", "prims::")
"""PyTorch's: what an operator of another library computes may change while nothing of ours does."""


class Compilation:
    """Compiles what a process runs.

    Whole graphs and PyTorch's own operations are kept in the cache on disk, operations with their times.

    Attributes:
        options: What the user's flags ask of the compiler.
        cache: Where graphs and operations are kept; None where it is switched off.

    Args:
        core: What to compile for.
        warn: Called with a sentence where the cache cannot be used; once.
        environment: Variables: `NEURON_CC_FLAGS` and those of the cache.

    Raises:
        UsageError: `NEURON_CC_FLAGS` has a value that does not exist.
    """

    def __init__(
        self, core: NeuronCore, warn: Callable[[str], None], environment: Mapping[str, str] = os.environ
    ) -> None:
        flags = parse_flags("", with_environment=True, environment=environment)
        self._core = core
        self._warn = warn
        self.options = flags.options
        self.cache = cache_of_user(environment, flags.cache_directory)
        self._keeps = True

    def program(self, module: hlo.Module, *, whole_graph: bool) -> Program:
        """The module's Program, from the cache where it is there; it knows the sources of its kernels."""
        program = self._compiled(module, whole_graph=whole_graph)
        ready = ready_programs(module)
        if not ready:
            return program
        sources = {key: getattr(call.program, "source", None) for key, call in ready.items()}
        return with_kernels(program, {key: source for key, source in sources.items() if source is not None})

    def _compiled(self, module: hlo.Module, *, whole_graph: bool) -> Program:
        from neuron_tools.compiler.cached import compilation_key
        from neuron_tools.compiler.compile import compile_logical

        if self.cache is None or not whole_graph:
            return compile_logical(module, self._core, self.options)
        key = compilation_key(module, self._core, self.options)
        found = self.cache.find(key)
        if found is not None:
            return found.program
        program = compile_logical(module, self._core, self.options)
        self._keep(program, lambda cache: cache.keep(key, Neff(program)))
        return program

    def operation(self, name: str, signature: Hashable, make: Callable[[], Executable]) -> Executable:
        """A compiled operation with its times, from the cache where it is there.

        Args:
            name: Qualified operator name.
            signature: Its `signature_key`.
            make: Compiles and simulates it.
        """
        from neuron_tools.compiler.cached import operation_key
        from neuron_tools.frontends.torch_eager.changed import has_foreign_decompositions

        if self.cache is None or not name.startswith(_OWN_OPERATORS) or has_foreign_decompositions():
            return make()
        key = operation_key(signature, self._core, self.options)
        found = self.cache.find_operation(key)
        if found is not None:
            return found
        made = make()
        self._keep(made.program, lambda cache: cache.keep_operation(key, made))
        return made

    def _keep(self, program: Program, keep: Callable[[CompileCache], None]) -> None:
        size = sum(
            table.nbytes for table in (program.instructions, program.waits, program.dmas, program.tiles)
        )
        if self.cache is None or not self._keeps or size > LARGEST_KEPT_BYTES:
            return
        try:
            keep(self.cache)
        except NeffError as error:
            self._warn(str(error))
            self._keeps = False
