"""What one device runs of a computation for many, with its collectives: as XLA's own partitioner splits it.

XLA partitions a sharded computation while it compiles it, and writes modules between its passes to a folder
where it is asked to.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.jax.hlo_file import module_bytecode
from neuron_tools.frontends.jax.patches import Patches

_PARTITIONS = re.compile(r"^(\d+)")
_PASS = "spmd-partitioning"
_DUMP = {"xla_dump_hlo_pass_re": _PASS, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": False}
_WRITTEN = f"*after_{_PASS}*.hlo.pb"
_MODULE_FIELD = b"\x0a"
"""Starts `hlo_module` of an `HloProto` (xla/service/hlo.proto)."""

_GROUPS = "replica_groups"
_MESH = re.compile(r'"(\w+)"=(\d+)')
_MESH_NAME = re.compile(r"mesh = @(\w+)")
_AXIS = re.compile(r'name = "(\w+)"(?:.*?pre_size ?= ?(\d+), size ?= ?(\d+))?')


class PartitioningError(NeuronToolsError):
    """What one device runs of a sharded computation is not known."""


def partition_count(module: Any) -> int:
    """Devices that a JAX module is sharded over; 1 for a plain one."""
    attributes = module.operation.attributes
    if "mhlo.num_partitions" not in attributes:
        return 1
    match = _PARTITIONS.match(str(attributes["mhlo.num_partitions"]))
    return int(match[1]) if match else 1


@contextmanager
def partitioned(options: Any) -> Iterator[Callable[[], bytes]]:
    """Let XLA write what its partitioner makes of the computation that is compiled inside.

    Args:
        options: Its `CompileOptions`; changed inside.

    Yields:
        After the compilation gives what was written, for `bytecode_of`; b"" where nothing was.
    """
    from jax._src import compilation_cache

    before, patches = list(options.env_option_overrides), Patches()
    # What comes out of JAX's cache was partitioned in another process.
    patches.replace(compilation_cache, "is_cache_used", lambda backend: False)
    with tempfile.TemporaryDirectory(prefix="neuron-tools-") as folder:
        options.env_option_overrides = [*before, ("xla_dump_to", folder), *_DUMP.items()]
        try:
            yield lambda: b"".join(path.read_bytes() for path in Path(folder).glob(_WRITTEN))
        finally:
            options.env_option_overrides = before
            patches.undo()


def bytecode_of(part: bytes) -> bytes:
    """The module of one device: StableHLO with locations, in MLIR's bytecode.

    Args:
        part: A serialized `HloProto` that XLA wrote after its partitioner.

    Raises:
        PartitioningError: It is none.
    """
    return _with_plain_groups(module_bytecode(_module(part)))


def _module(proto: bytes) -> bytes:
    """The `HloModuleProto` in a serialized `HloProto`, whose first field it is."""
    if not proto.startswith(_MODULE_FIELD):
        raise PartitioningError(
            "XLA did not say how it splits this sharded computation: install the version of JAX that Neuron "
            "Tools was tested with."
        )
    size, shift, at = 0, 0, len(_MODULE_FIELD)
    while True:
        size |= (proto[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if proto[at - 1] < 0x80:
            return proto[at : at + size]


def _with_plain_groups(bytecode: bytes) -> bytes:
    """The same module with the ranks of each collective's groups, where it names axes of a mesh."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(bytecode)
        meshes = {
            str(view.operation.attributes["sym_name"]).strip('"'): _axes(view.operation)
            for view in module.body
            if view.operation.name == "sdy.mesh"
        }
        _name_ranks(module.operation, meshes)
        return mlir.module_to_bytecode(module)


def _axes(mesh: Any) -> dict[str, int]:
    return {name: int(size) for name, size in _MESH.findall(str(mesh.attributes["mesh"]))}


def _name_ranks(operation: Any, meshes: dict[str, dict[str, int]]) -> None:
    from jaxlib.mlir import ir

    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                _name_ranks(inner, meshes)
                groups = str(inner.attributes[_GROUPS]) if _GROUPS in inner.attributes else ""
                name = _MESH_NAME.search(groups)
                if name:
                    ranks: Any = ranks_along(meshes[name[1]], groups)
                    inner.attributes[_GROUPS] = ir.DenseIntElementsAttr.get(ranks)


def ranks_along(mesh: dict[str, int], axes: str) -> NDArray[np.int64]:
    """The groups of ranks that differ along some axes of a mesh alone.

    Args:
        mesh: Size of each axis, outermost first.
        axes: Text that names them as StableHLO does: `axis_ref<name = "x">`, a part of one with `pre_size`
            and `size`.

    Returns:
        Ranks, int64 (groups, ranks of a group).
    """
    chosen = {name: (int(pre or 1), int(size or mesh[name])) for name, pre, size in _AXIS.findall(axes)}
    parts = {name: chosen.get(name, (extent, 1)) for name, extent in mesh.items()}
    shape = [part for name, (pre, size) in parts.items() for part in (pre, size, mesh[name] // (pre * size))]
    inside = [3 * list(mesh).index(name) + 1 for name in chosen]
    outside = [axis for axis in range(len(shape)) if axis not in inside]
    members = math.prod(shape[axis] for axis in inside)
    ranks = np.arange(math.prod(shape)).reshape(shape).transpose(*outside, *inside)
    return np.ascontiguousarray(ranks.reshape(-1, members), np.int64)
