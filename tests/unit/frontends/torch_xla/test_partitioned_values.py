"""The values of a graph that is partitioned over four cores: its module, run by XLA on four CPU devices."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from neuron_tools.frontends.jax import partitioning
from neuron_tools.frontends.torch_lowering import lowering
from neuron_tools.frontends.torch_xla import execution, spread
from neuron_tools.frontends.torch_xla.graph import RecordedGraph
from neuron_tools.frontends.torch_xla.manual import enter, leave
from neuron_tools.frontends.torch_xla.marking import alike, mark
from neuron_tools.frontends.torch_xla.sharding import WHOLE, Sharding
from neuron_tools.frontends.torch_xla.tracing import lower_recorded_part

pytest.importorskip("jaxlib")

CORES = 4
ROWS, COLUMNS = Sharding.of((CORES, 1), range(CORES)), Sharding.of((1, CORES), range(CORES))
EACH = Sharding.of((CORES,), range(CORES))
# A mesh of two times two cores; what is cut along one of its axes lies twice along the other.
BATCH, BLOCKS = Sharding.of((2, 1), (0, 1, 2, 3)), Sharding.of((2, 2), (0, 2, 1, 3))
OUTER_ROWS, OUTER_COLUMNS = Sharding.of((2, 1), (0, 2, 1, 3)), Sharding.of((1, 2), (0, 2, 1, 3))
WIDE = {"rtol": 2e-4, "atol": 2e-5}
TOLERANCES = {torch.bfloat16: {"rtol": 2**-5, "atol": 2**-7}}
"""Eight bits of mantissa, and sums over the cores in another order."""
PADDING = 7.0
"""Stands behind the last part of a dimension that the cores do not divide; no result may depend on it."""


class Cores:
    """Four cores, and the values in which the graph for them begins."""

    def __init__(self, monkeypatch):
        self._before = {}
        self._part = None
        monkeypatch.setattr(lowering, "split", self._split)

    def _split(self, *call):
        self._part = partitioning.split(*call)
        return self._part

    def put(self, values, sharding=WHOLE):
        """A tensor that the graph takes."""
        tensor = values.to("xla")
        self._before[id(tensor.lazy)] = values.clone()
        mark(tensor, sharding)
        return tensor

    def check(self):
        """Compare what each core gives with PyTorch's values; the opcodes of what they run."""
        graph = execution.current_graph()
        graph.settle()
        outputs = graph.outputs()
        lowered = lower_recorded_part(graph, outputs, "graph", CORES)
        given = [(self._before.get(id(value), value.inner), value.sharding or WHOLE) for value in graph.held]
        made = [graph.made()[number] for number, text in zip(outputs, lowered.results) if text]
        made += [graph.held[parameter] for _, parameter in lowered.module.aliases]
        for parts, text, value in zip(
            run_on_each(self._part.bytecode, given), self._part.results, made, strict=True
        ):
            for core, part in enumerate(parts):
                wanted = value.inner.cpu()[Sharding.parse(text).part(value.inner.shape, core)]
                real = tensor_of(part)[tuple(slice(0, extent) for extent in wanted.shape)]
                torch.testing.assert_close(real, wanted, **TOLERANCES.get(real.dtype, WIDE))
        return {operation.opcode for operation in lowered.module.operations}


@pytest.fixture
def cores(xla, monkeypatch):
    monkeypatch.setattr(spread, "_on", [True])
    monkeypatch.setattr(spread, "core_count", lambda: CORES)
    monkeypatch.setattr(execution, "_current", RecordedGraph())
    return Cores(monkeypatch)


def run_on_each(bytecode, given):
    """Run a module of one core on all of them; each result has a part from each.

    Args:
        bytecode: What `split` gave. Its collectives are those of partitions and become those of replicas.
        given: Each argument's whole value, and how it lies.
    """
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    client, options = partitioning._client(CORES), xla_client.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = CORES
    options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(
        np.arange(CORES).reshape(CORES, 1)
    )
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(bytecode)
        types = among_replicas(module)
        code = mlir.module_to_bytecode(module)
    devices = client.devices()
    executable = client.compile_and_load(code, xla_client.DeviceList(tuple(devices)), options)
    arguments = [
        parts_on(devices, [padded(value.cpu()[how.part(value.shape, core)], shape) for core in range(CORES)])
        for (value, how), shape in zip(given, types)
    ]
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(part) for part in parts] for parts in results]


def among_replicas(module):
    """Let collectives and positions be those of replicas; the shapes of what the module takes."""
    from jaxlib.mlir import ir

    def go(block):
        for view in list(block.operations):
            operation = view.operation
            for name in {"channel_handle", "use_global_device_ids"} & set(operation.attributes):
                del operation.attributes[name]
            if operation.name == "stablehlo.partition_id":
                own = ir.Operation.create(
                    "stablehlo.replica_id", [operation.results[0].type], ip=ir.InsertionPoint(operation)
                )
                operation.results[0].replace_all_uses_with(own.results[0])
                operation.erase()
                continue
            for region in operation.regions:
                for inner in region.blocks:
                    go(inner)

    for name in [each for each in module.operation.attributes if each.startswith("mhlo.")]:
        del module.operation.attributes[name]
    go(module.body)
    (main,) = [each for each in module.body if str(each.operation.attributes["sym_name"]) == '"main"']
    return [tuple(ir.RankedTensorType(kind).shape) for kind in ir.FunctionType(main.type).inputs]


def padded(part, shape):
    values = array_of(part)
    whole = np.full(shape, PADDING, values.dtype)
    whole[tuple(slice(0, extent) for extent in part.shape)] = values
    return whole


def array_of(tensor):
    if tensor.dtype is not torch.bfloat16:
        return tensor.numpy()
    return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def tensor_of(array):
    if array.dtype != ml_dtypes.bfloat16:
        return torch.from_numpy(array.copy())
    return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)


def parts_on(devices, parts):
    """An array with a part on each device."""
    import jax
    from jax._src.sharding_impls import GSPMDSharding
    from jaxlib import xla_client

    how, shape = xla_client.OpSharding(), list(parts[0].shape)
    how.type = xla_client.OpSharding.Type.REPLICATED
    if shape:
        how.type = xla_client.OpSharding.Type.OTHER
        how.tile_assignment_dimensions = [len(parts), *[1] * (len(shape) - 1)]
        how.tile_assignment_devices = list(range(len(parts)))
        shape[0] *= len(parts)
    with jax.enable_x64(True):
        moved = [jax.device_put(part, device) for part, device in zip(parts, devices)]
        return jax.make_array_from_single_device_arrays(
            tuple(shape), GSPMDSharding(tuple(devices), how), moved
        )


@pytest.mark.parametrize(
    ("rows", "batch", "first", "bias", "second"),
    [
        (16, ROWS, WHOLE, WHOLE, WHOLE),
        (10, ROWS, WHOLE, WHOLE, WHOLE),
        (10, WHOLE, ROWS, EACH, COLUMNS),
        (16, BATCH, OUTER_ROWS, WHOLE, OUTER_COLUMNS),
        (10, ROWS, BLOCKS, EACH, BLOCKS),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_of_training(cores, rows, batch, first, bias, second, dtype):
    torch.manual_seed(0)
    values = torch.rand(rows, 8), torch.randn(12, 8) / 3, torch.randn(12) / 3, torch.randn(5, 12) / 3
    lies = (batch, first, bias, second)
    inputs, *weights = (cores.put(value.to(dtype), how) for value, how in zip(values, lies))
    labels = cores.put(torch.arange(rows) % 5)
    weights = [torch.nn.Parameter(weight) for weight in weights]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    hidden = torch.nn.functional.gelu(inputs @ weights[0].t() + weights[1])
    loss = torch.nn.functional.cross_entropy(hidden @ weights[2].t(), labels)
    loss.backward()
    optimizer.step()
    assert "all_reduce" in cores.check()


@pytest.mark.parametrize("rows", [8, 10])
@pytest.mark.parametrize("how", [ROWS, COLUMNS, BLOCKS])
def test_operators_that_look_up_and_write_rows(cores, rows, how):
    torch.manual_seed(0)
    table, places = cores.put(torch.randn(rows, 12), how), cores.put(torch.randint(12, (rows, 4)), how)
    results = [
        table.gather(1, places),
        table.scatter(1, places, 2.0),
        table.scatter_add(1, places, table[:, :4]),
        torch.nn.functional.embedding(places % rows, table),
        table.softmax(1).cumsum(0),
        torch.nn.functional.layer_norm(table, (12,)),
        table.sort(1).values,
    ]
    cores.check()
    assert len(results) == 7


def test_rows_that_are_written_stay_on_their_cores(cores):
    table, places = cores.put(torch.randn(16, 12), ROWS), cores.put(torch.randint(12, (16, 3)), ROWS)
    result = table.gather(1, places), table.scatter(1, places, 2.0), table.scatter_add(1, places, table)
    assert not {opcode for opcode in cores.check() if opcode.startswith("all_")}
    assert len(result) == 3


@pytest.mark.parametrize(("rows", "how"), [(8, ROWS), (8, COLUMNS), (8, BLOCKS), (8, WHOLE), (10, ROWS)])
def test_work_of_each_core_on_its_own_part(cores, rows, how):
    torch.manual_seed(0)
    table, scale = cores.put(torch.randn(rows, 8), how), cores.put(torch.randn(1))
    part = enter(table, how)
    result = leave(part.cumsum(0) * scale + part.sum(1, keepdim=True), how, (rows, 8))
    after = result @ result.t()
    assert "custom_call" not in cores.check()
    assert after.shape == (rows, rows)


@pytest.mark.parametrize("rows", [2, 8, 10])
def test_parts_that_nothing_is_made_of_come_back_as_they_were(cores, rows):
    table = cores.put(torch.randn(rows, 3), ROWS)
    result = leave(enter(table, ROWS), ROWS, (rows, 3))
    cores.check()
    assert result.shape == (rows, 3)


def test_tensors_lie_as_others_do(cores):
    table, other = cores.put(torch.randn(8, 8), ROWS), cores.put(torch.randn(8, 8))
    first, second = alike(table, other)
    result = first + 1, second * 2
    cores.check()
    assert {Sharding.parse(text).counts for text in cores._part.results} == {(CORES, 1)}
    assert len(result) == 2


def test_gradients_pass_through_tensors_that_lie_alike(cores):
    table, other = cores.put(torch.randn(8, 8), ROWS), cores.put(torch.randn(8, 8))
    weight = torch.nn.Parameter(table)
    first, second = alike(weight, other)
    (first * second).sum().backward()
    cores.check()
    assert torch.equal(weight.grad.lazy.inner.cpu(), other.lazy.inner.cpu())
