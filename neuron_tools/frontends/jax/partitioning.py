"""What one device runs of a computation for many, with its collectives: as XLA's own partitioner splits it.

XLA partitions a sharded computation while it compiles it, and writes modules between its passes to a folder
where it is asked to.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.stablehlo import read_module
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.jax import batched_calls
from neuron_tools.frontends.jax.hlo_file import module_bytecode
from neuron_tools.frontends.jax.patches import Patches
from neuron_tools.frozen import frozen

_PARTITIONS = re.compile(r"^(\d+)")
_PASS = "spmd-partitioning"
_DUMP = {"xla_dump_hlo_pass_re": _PASS, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": False}
_WRITTEN = f"*after_{_PASS}*.hlo.pb"
_MODULE_FIELD = b"\x0a"
"""Starts `hlo_module` of an `HloProto` (xla/service/hlo.proto)."""

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_GIVEN = "mhlo.spmd_output_sharding"
_GROUP = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")
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


@frozen
class Part:
    """What one device runs of a partitioned module.

    Attributes:
        bytecode: StableHLO with locations, in MLIR's bytecode.
        results: How the results lie over the devices, as `OpSharding` is written.
    """

    bytecode: bytes
    results: tuple[str, ...]


def split(text: str, devices: int, free: Sequence[bool]) -> Part:
    """Partition a module over devices.

    Args:
        text: StableHLO. Arguments say in the attribute `mhlo.sharding` how they lie over the devices.
        devices: How many.
        free: For each result whether XLA may choose how it lies; the others have the attribute, too.

    Raises:
        PartitioningError: XLA cannot partition it, or jaxlib is absent, of which it is a part.
    """
    if find_spec("jax") is None:
        raise PartitioningError(
            'Programs are partitioned by XLA, which is part of jaxlib: pip install "neuron-tools[jax]".'
        )
    os.environ.setdefault(
        _LOG_LEVEL, "2"
    )  # XLA would say in each process that its partitioner is an older one
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    batched_calls.register()
    client = _client(devices)
    options = _options(devices, free)
    with mlir.make_ir_context():
        whole = mlir.module_to_bytecode(ir.Module.parse(text))
    with partitioned(options) as read:
        try:
            client.compile_and_load(whole, xla_client.DeviceList(tuple(client.devices())), options)
        except Exception as error:  # what XLA's CPU cannot run may be partitioned all the same
            if not read():
                raise PartitioningError(f"XLA cannot partition the program: {error}") from error
        bytecode = bytecode_of(read())
    with mlir.make_ir_context():
        attributes = ir.Module.parse(bytecode).operation.attributes
        return Part(bytecode, _shardings(str(attributes[_GIVEN]).strip('"'), len(free)))


def read_part(bytecode: bytes, **options: Any) -> Module:
    """The module of one device, by `compiler.stablehlo.read_module` with its options."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        return read_module(ir.Module.parse(bytecode), **options)


@lru_cache(maxsize=4)
def _client(devices: int) -> Any:
    """XLA's CPU with as many devices, whatever JAX itself has."""
    from jaxlib import xla_client

    return xla_client.make_cpu_client(num_devices=devices)


def _options(devices: int, free: Sequence[bool]) -> Any:
    from jaxlib import xla_client

    options = xla_client.CompileOptions()
    options.num_partitions = devices
    build = options.executable_build_options
    build.num_partitions, build.num_replicas = devices, 1
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    build.allow_spmd_sharding_propagation_to_output = list(free)
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    return options


def _shardings(text: str, count: int) -> tuple[str, ...]:
    """One a result: of several they stand in braces."""
    if not text.startswith("{{"):
        return (text,) * count
    return tuple(_GROUP.findall(text[1:-1]))


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
