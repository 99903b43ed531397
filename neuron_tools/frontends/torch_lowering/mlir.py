"""An FX graph of plain ATen operators to a StableHLO MLIR module, by torch-mlir.

One MLIR context serves the process: making one costs more than lowering an operator. Every operation's
location is `fw:<row>` (the framework row it came from) around `n:<index>` (the graph node, for diagnostics).
"""

from __future__ import annotations

import functools
import re
import threading
from typing import Any

from torch import fx
from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_importer import ContextCache, FxImporter
from torch_mlir.passmanager import PassManager

from neuron_tools.frontends.torch_lowering.combining_scatter import COMBINER, restore_combiners
from neuron_tools.frontends.torch_lowering.undefined_values import define_values

_PIPELINES = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{ extra-library=})",
    "builtin.module(torch-backend-to-stablehlo-backend-pipeline,func.func(stablehlo-aggressive-simplification))",
)
_NODE_IN_DIAGNOSTIC = re.compile(r'"n:(\d+)"')
_LOCATION = re.compile(r'^loc\([^ ]*\): |^"fw:-?\d+"\("n:\d+"\): |^loc\("[^ ]*: ')
_OPERATOR_NAME = re.compile(r'name = "([\w.]+)"')

# torch-mlir's passes share the context, and MLIR is not asked to be re-entrant.
LOCK = threading.Lock()


class LoweringFailure(Exception):
    """torch-mlir could not lower a graph.

    Attributes:
        nodes: The graph nodes at fault, as far as the diagnostics tell; may be empty.
        reason: The first diagnostic, shortened.
    """

    def __init__(self, nodes: list[fx.Node], reason: str) -> None:
        super().__init__(reason)
        self.nodes = nodes
        self.reason = reason


class _LocatedCache(ContextCache):
    """torch-mlir's type cache with our locations, which also tells which node is being imported."""

    __slots__ = ("current", "indices")

    def get_node_location(self, node: fx.Node) -> Any:
        self.current = node
        index = self.indices.setdefault(node, len(self.indices))
        inner = ir.Location.name(f"n:{index}", context=self._c)
        return ir.Location.name(f"fw:{node.meta.get('row', -1)}", childLoc=inner, context=self._c)


def to_stablehlo(graph: fx.Graph, name: str = "main") -> ir.Module:
    """Lower a functional graph of ATen operators.

    Args:
        graph: Placeholders, `call_function` nodes with ATen overloads and `meta["val"]` fake tensors, one
            output node with a flat tuple of nodes. `meta["row"]` is the framework row.
        name: Name of the function.

    Raises:
        LoweringFailure: A node has no lowering. The caller holds `LOCK` while it uses the module.
    """
    importer = FxImporter(context=_context(), config_check=False)
    cache = _LocatedCache(_context(), py_attr_tracker=importer._py_attr_tracker)
    cache.indices, cache.current = {}, None
    importer._cc = cache
    try:
        importer.import_stateless_graph(graph, func_name=name)
    except Exception as error:  # any importer error means: this node cannot be imported
        failed = [cache.current] if cache.current is not None else []
        raise LoweringFailure(failed, _first_line(error)) from error
    _run_passes(importer.module, cache)
    define_values(importer.module)
    nodes = cache.indices.items()
    restore_combiners(importer.module, {i: n.meta[COMBINER] for n, i in nodes if COMBINER in n.meta})
    return importer.module


def _run_passes(module: ir.Module, cache: _LocatedCache) -> None:
    by_index = {index: node for node, index in cache.indices.items()}
    for pass_manager in _pass_managers():
        _diagnostics.clear()
        try:
            pass_manager.run(module.operation)
        except ir.MLIRError as error:
            _diagnostics.append(str(error))
        if _diagnostics:  # a pass may report an error and still claim success
            found = [int(index) for text in _diagnostics for index in _NODE_IN_DIAGNOSTIC.findall(text)]
            nodes = list(dict.fromkeys(by_index[index] for index in found if index in by_index))
            raise LoweringFailure(nodes, _shortened(_diagnostics[0]))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _shortened(lines[0]) if lines else type(error).__name__


def _shortened(diagnostic: str) -> str:
    """Without location and operands: "failed to legalize operation 'torch.aten.median'"."""
    error = next((line for line in diagnostic.splitlines() if "error: " in line), diagnostic)
    text = _LOCATION.sub("", error.split("error: ")[-1].strip())
    name = _OPERATOR_NAME.search(text)
    text = text.split(": %")[0].split(" that was explicitly")[0][:120]
    return text.replace("torch.operator", name.group(1)) if name else text


@functools.cache
def _context() -> ir.Context:
    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.enable_multithreading(False)
    context.attach_diagnostic_handler(_collect)
    return context


_diagnostics: list[str] = []


def _collect(diagnostic: Any) -> bool:
    if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
        _diagnostics.append(f"{diagnostic.location}: {diagnostic.message}")
    return True


@functools.cache
def _pass_managers() -> tuple[PassManager, ...]:
    with _context():
        return tuple(PassManager.parse(pipeline) for pipeline in _PIPELINES)
