"""Graphs of a trial run that are kept, not compiled: `neuron_parallel_compile` compiles them in parallel."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuron_tools.capture.executables import UNTIMED, ExecutableStore
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.neff import Neff
from neuron_tools.neff.cache import CompileCache
from neuron_tools.neff.files import write_whole

if TYPE_CHECKING:
    from neuron_tools.compiler import hlo
    from neuron_tools.frontends.executables import SharedCode
    from neuron_tools.records.program import Program

VARIABLE = "NEURON_EXTRACT_GRAPHS_ONLY"
"""Set to "1": graphs are collected, none is compiled. AWS's own name."""
FOLDER, SUFFIX = "extracted", ".graph"


@frozen
class ExtractedGraph:
    """What compiling a graph takes."""

    module: hlo.Module
    core: NeuronCore
    options: CompilerOptions


class ExtractedGraphs(ExecutableStore):
    """Keeps the graphs that a process runs; nothing takes device time."""

    def for_operation(self, name: str, arguments: tuple[Any, ...]) -> tuple[int, int, int]:
        """Single operations are not compiled ahead."""
        return UNTIMED

    def executable_for(
        self,
        module_factory: Callable[[], hlo.Module],
        key: Hashable,
        name: str,
        shared: SharedCode | None = None,
    ) -> tuple[int, int]:
        """Keep a graph that the cache has not; one that several modules run is kept once."""
        key = shared.key if shared else key
        with self._lock:
            if key not in self._graphs:
                self._graphs[key] = None
                self._guarded(lambda: self._extract(module_factory()), name)
        return UNTIMED[:2]

    def executable_of(self, program: Program, key: Hashable, *, eager: bool = False) -> tuple[int, int]:
        """What is compiled already needs nothing."""
        return UNTIMED[:2]

    def executables_together(self, programs: Sequence[Program], key: Hashable) -> list[tuple[int, int]]:
        """Likewise."""
        return [UNTIMED[:2] for _ in programs]

    def _extract(self, module: hlo.Module) -> Any:
        from neuron_tools.compiler.cached import compilation_key

        cache, options = self._compilation.cache, self._compilation.options
        if cache is None:
            return None
        found = compilation_key(module, self._core, options)
        if cache.find(found) is None:
            folder = cache.folder / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            graph = ExtractedGraph(module, self._core, options)
            write_whole(folder / f"{found}{SUFFIX}", pickle.dumps(graph))
        return None


def extracted(cache: CompileCache) -> list[Path]:
    """The graphs that wait in a cache's folder."""
    return sorted((cache.folder / FOLDER).glob(f"*{SUFFIX}"))


def compile_extracted(file: Path, limit_bytes: int) -> str:
    """Compile a graph that waits, into the cache beside it; its file goes.

    Returns:
        Why it cannot be compiled; empty where it is.
    """
    from neuron_tools.compiler.compile import compile_logical

    try:
        # The file is the user's own, in a folder that nobody else writes.
        graph: ExtractedGraph = pickle.loads(file.read_bytes())
        program = compile_logical(graph.module, graph.core, graph.options)
        CompileCache(file.parent.parent, limit_bytes).keep(file.stem, Neff(program))
    except Exception as error:  # one graph that fails leaves the others as they are
        return f"{type(error).__name__}: {error}".split("\n")[0]
    file.unlink(missing_ok=True)
    return ""
