"""The backward of attention: what it moves and multiplies, for heads, masks and lengths of every kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.compiler import compile_logical, compile_module
from neuron_tools.compiler.hlo import Operation, Value
from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT
from neuron_tools.records.program import DType, Engine, Memory, Opcode
from neuron_tools.simulator import simulate
from neuron_tools.simulator.check import check
from neuron_tools.simulator.instruction_costs import instruction_costs
from tests.unit.compiler.modules import tile_races
from tests.unit.compiler.operators import DRAWN_BY_A_CORE, lowered

TARGET = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
TRN1 = hardware.get("trn1")


def module(batch=2, heads=4, rows=256, depth=64, key_heads=0, columns=0, bias=(), causal=False,
           dtype=torch.bfloat16, of_tokens=False, dropout=0.0):  # fmt: skip
    def tensor(*shape, dtype=dtype):
        return torch.empty(shape, dtype=dtype, device="meta")

    def states(heads, rows):
        """As a projection leaves them with `of_tokens`: the heads of a token beside each other."""
        if of_tokens:
            return tensor(batch, rows, heads, depth).transpose(1, 2)
        return tensor(batch, heads, rows, depth)

    query, key = states(heads, rows), states(key_heads or heads, columns or rows)
    logarithms = tensor(batch, heads, rows, dtype=torch.float32)
    arguments = (query, query, key, key, query, logarithms, dropout, causal)
    options = {"attn_mask": tensor(*bias)} if bias else {}
    return lowered(TARGET, *arguments, **options)


def moved_bytes(program):
    dmas = program.dmas
    read, written = (dmas[f"{side}_memory"] == Memory.HBM for side in ("source", "destination"))
    return int(dmas["bytes"][read].sum()), int(dmas["bytes"][written].sum())


def products(program):
    return int((program.instructions["opcode"] == Opcode.MATMUL).sum())


def test_scores_never_leave_the_chip():
    program = compile_module(module(rows=1024), TRN1)
    size = 2 * 2 * 4 * 1024 * 64
    read, written = moved_bytes(program)
    assert written == 3 * size
    assert size * 5 <= read <= 5.1 * size  # each operand once, and the logarithms
    assert len([tensor for tensor in program.tensors if tensor.kind.name == "INTERMEDIATE"]) == 0


def test_scores_that_are_computed_again_are_no_flops_of_the_model():
    program = compile_module(module(batch=2, heads=4, rows=256, depth=64), TRN1)
    assert sum(operation.model_flops for operation in program.hlo) == 4 * 2 * (2 * 4) * 256 * 256 * 64


def test_lost_weights_are_drawn_again_on_chip():
    plain, lossy = (compile_module(module(rows=1024, dropout=p), TRN1) for p in (0.0, 0.1))
    assert moved_bytes(lossy) == moved_bytes(plain)
    drawn = lossy.instructions[lossy.instructions["opcode"] == Opcode.DROPOUT]
    assert int((drawn["partitions"].astype(int) * drawn["elements"]).sum()) == 2 * 4 * 1024 * 1024


def test_the_future_is_not_computed():
    all_pairs, causal = (compile_module(module(rows=1024, causal=causal), TRN1) for causal in (False, True))
    diagonal_tiles = 2 * 4 * 8  # where minus infinity is added to some scores
    assert products(causal) == products(all_pairs) * 36 // 64 + diagonal_tiles


@pytest.mark.parametrize("of_tokens", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(129, 300), (100, 700), (16, 17)])
def test_keys_in_the_future_of_all_queries_have_gradients_of_zero(rows, columns, of_tokens):
    graph = module(rows=rows, columns=columns, causal=True, of_tokens=of_tokens)
    program = compile_module(graph, TRN1)
    check(program, TRN1)
    assert tile_races(program) == 0
    assert moved_bytes(program)[1] == 2 * 2 * 4 * 64 * (rows + 2 * columns)
    assert products(program) == products(compile_module(module(rows=rows, causal=True), TRN1))


def test_heads_that_share_keys_add_up_in_one_gradient():
    program = compile_module(module(heads=8, key_heads=2), TRN1)
    assert moved_bytes(program)[1] == 2 * 2 * 256 * 64 * (8 + 2 + 2)


def test_a_mask_that_heads_share_is_loaded_once():
    bias = (2, 1, 128, 128)
    plain, masked = (compile_module(module(rows=128, bias=each), TRN1) for each in ((), bias))
    more = moved_bytes(masked)[0] - moved_bytes(plain)[0]
    assert more == 2 * torch.Size(bias).numel()


def test_two_cores_share_heads():
    core = hardware.get("trn2", lnc=2)
    program = compile_logical(module(batch=1), core)
    assert program.physical_cores == 2
    assert 2 * products(program.of_cores[0]) == products(compile_module(module(batch=1), core))


def test_operands_that_only_other_devices_need_hinder_nothing():
    target = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default

    def tensor(*shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device="meta")

    states, logarithms, number = tensor(2, 4, 64, 32), tensor(2, 4, 64), tensor(dtype=torch.int64)
    arguments = (
        states, states, states, states, None, [True] * 3 + [False], states, logarithms, number, number,
        64, 64, 0.0, True, number, number,
    )  # fmt: skip
    graph = lowered(target, *arguments)
    program = compile_logical(graph, hardware.get("trn2", lnc=2))
    assert (program.physical_cores, program.warnings) == (2, ())
    assert products(program)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options", [{"rows": 128}, {"rows": 512}, {"rows": 512, "causal": True}, {"heads": 8, "key_heads": 4}]
)
def test_heads_beside_each_other_are_loaded_together(options, dtype):
    """A head's rows alone are 128 or 256 bytes each, which DMA moves at a third of its rate."""
    program = compile_module(module(**options, dtype=dtype, of_tokens=True), TRN1)
    loads = program.dmas[program.dmas["source_memory"] == Memory.HBM]
    assert loads["descriptor_bytes"][loads["bytes"] >= 8192].min() >= 512
    rows, heads = options.get("rows", 256), options.get("heads", 4)
    states = 2 * rows * 64 * (3 * heads + 2 * options.get("key_heads", heads))
    logarithms = 2 * heads * rows * 4
    assert int(loads["bytes"].sum()) == states * dtype.itemsize + logarithms


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rows": 200, "columns": 72},
        {"rows": 1, "columns": 300},
        {"depth": 128, "causal": True},
        {"rows": 640, "heads": 6, "key_heads": 2, "causal": True},
        {"rows": 384, "bias": (2, 4, 384, 384)},
        {"rows": 384, "bias": (1, 1, 384, 384)},
        {"rows": 200, "columns": 72, "heads": 6, "of_tokens": True},
        {"rows": 640, "heads": 6, "key_heads": 2, "causal": True, "of_tokens": True},
    ],
)
def test_every_shape_is_one_native_loop(options, dtype):
    graph = module(**options, dtype=dtype)
    assert ATTENTION_GRADIENT in [operation.opcode for operation in graph.operations]
    program = compile_module(graph, TRN1)
    results = [graph.values[value].type.element_count for value in graph.results]
    assert not program.warnings
    assert products(program)
    assert moved_bytes(program)[1] == sum(results) * dtype.itemsize
    assert simulate(program, TRN1).duration_ps > 0


def test_heads_wider_than_the_tensor_engine_are_spelled_out():
    graph = module(depth=256)
    assert ATTENTION_GRADIENT not in [operation.opcode for operation in graph.operations]
    assert not graph.warnings


def with_tokens_first(graph):
    """The module with its gradients turned, as projections read them."""
    values, operations, results = list(graph.values), list(graph.operations), []
    for result in graph.results:
        type_ = values[result].type
        shape = tuple(type_.shape[axis] for axis in (0, 2, 1, 3))
        results.append(len(values))
        values.append(Value(len(values), replace(type_, shape=shape)))
        operations.append(Operation("transpose", (result,), (results[-1],), {"permutation": (0, 2, 1, 3)}))
    return replace(graph, values=tuple(values), operations=tuple(operations), results=tuple(results))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options", [{}, {"causal": True, "rows": 640}, {"heads": 6, "key_heads": 2}, {"rows": 200, "columns": 72}]
)
def test_gradients_that_projections_read_leave_with_heads_side_by_side(options, dtype):
    graph = module(**options, dtype=dtype)
    turned = compile_module(with_tokens_first(graph), TRN1)
    assert [operation.opcode for operation in turned.hlo] == [ATTENTION_GRADIENT]
    assert moved_bytes(turned) == moved_bytes(compile_module(graph, TRN1))
    stores = turned.dmas[turned.dmas["destination_memory"] == Memory.HBM]
    heads = options.get("key_heads", options.get("heads", 4))
    assert stores["descriptor_bytes"].min() >= heads * 64 * dtype.itemsize
    assert tile_races(turned, TRN1) == 0
    check(turned, TRN1)


def test_long_sequences_have_room_for_what_waits_for_further_heads():
    graph = module(heads=8, rows=4096, dtype=torch.float32, causal=True)
    program = compile_module(with_tokens_first(graph), TRN1)
    assert [operation.opcode for operation in program.hlo] == [ATTENTION_GRADIENT]
    check(program, TRN1)


def busy_ps(program, engine):
    """Time in which an engine issues: from each instruction's start to when the next one could start."""
    rows = program.instructions[program.instructions["engine"] == engine]
    return int(instruction_costs(rows, TRN1)[0].sum())


@pytest.mark.parametrize(("rows", "of_tokens"), [(128, True), (512, True), (512, False)])
def test_in_fp32_it_runs_at_the_pace_of_the_tensor_engine(rows, of_tokens):
    graph = module(batch=4, heads=12, rows=rows, dtype=torch.float32, of_tokens=of_tokens)
    program = compile_module(with_tokens_first(graph), TRN1)
    assert simulate(program, TRN1).duration_ps <= 1.2 * busy_ps(program, Engine.TENSOR)


def test_in_bf16_it_runs_at_the_pace_of_the_port_to_psum_that_two_engines_share():
    program = compile_module(module(batch=4, heads=12, rows=512, of_tokens=True), TRN1)
    port_ps = sum(busy_ps(program, engine) for engine in (Engine.VECTOR, Engine.SCALAR))
    assert simulate(program, TRN1).duration_ps <= 1.3 * port_ps


@pytest.mark.parametrize(("depth", "at_once"), [(32, 4), (64, 2), (96, 1), (128, 1)])
def test_as_many_heads_are_turned_at_once_as_the_array_has_rows_for(depth, at_once):
    heads = 2 * 4
    program = compile_module(module(rows=128, depth=depth, of_tokens=True), TRN1)
    turned = int((program.instructions["opcode"] == Opcode.TRANSPOSE).sum())
    of_operands, of_scores, of_logarithms = 4 * heads // at_once, heads, 2
    assert turned == of_operands + of_scores + of_logarithms


def test_rows_of_so_many_heads_are_loaded_together_that_they_move_well():
    loaded = compile_module(module(batch=4, heads=12, of_tokens=True), TRN1).dmas
    rows = loaded[(loaded["source_memory"] == Memory.HBM) & (loaded["dtype"] == DType.BF16)]
    assert set(rows["descriptor_bytes"]) == {12 * 64 * 2}
    assert not rows["strided"].any()


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({}, torch.bfloat16),
        ({"dropout": 0.1}, torch.bfloat16),
        ({"bias": (16, 1, 128, 128)}, torch.bfloat16),
        ({"heads": 6, "depth": 128}, torch.bfloat16),
        ({}, torch.float32),
    ],
)
def test_short_sequences_take_little_longer_than_their_bytes(options, dtype):
    """As in the training of BERT: 16 sequences of 128 tokens."""
    graph = module(**{"batch": 16, "heads": 12, "rows": 128, **options}, dtype=dtype, of_tokens=True)
    program = compile_module(with_tokens_first(graph), TRN1)
    bytes_ps = sum(moved_bytes(program)) / DRAWN_BY_A_CORE * 1e12
    assert simulate(program, TRN1).duration_ps <= 1.5 * bytes_ps


@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(
    "options",
    [
        {"rows": 2048, "depth": 128, "heads": 4, "key_heads": 2, "causal": True},
        {"rows": 512},
        {"rows": 128, "heads": 8, "key_heads": 2},
        {"rows": 128},
    ],
)
def test_tiles_are_read_before_they_are_written_again(options, dropout, target):
    core = hardware.get(target)
    program = compile_module(module(batch=1, **options, dropout=dropout), core)
    assert not program.warnings
    assert tile_races(program, core) == 0
    check(program, core)


def test_elements_of_four_bytes_are_turned_in_halves_where_that_is_quicker():
    graph = module(batch=1, rows=128, dtype=torch.float32)
    for target, dtype, count in (("trn1", DType.BF16, 2), ("trn2", DType.F32, 1)):
        rows = compile_module(graph, hardware.get(target)).instructions
        turned = rows[rows["opcode"] == Opcode.TRANSPOSE]
        assert set(turned["input_dtype"]) == {dtype}
        of_operands, of_scores, of_logarithms = 4 * 4, 4, 1
        assert len(turned) == count * (of_operands + of_scores + of_logarithms)


def test_logarithms_of_a_tokens_heads_are_read_as_they_lie():
    """As the forward pass on the device leaves them: (batch, tokens, heads) in memory."""
    states = torch.empty(2, 128, 12, 64, dtype=torch.bfloat16, device="meta").transpose(1, 2)
    logarithms = torch.empty(2, 128, 12, device="meta").transpose(1, 2)
    graph = lowered(TARGET, *(states,) * 5, logarithms, 0.0, False)
    program = compile_module(graph, TRN1)
    assert [operation.opcode for operation in program.hlo] == [ATTENTION_GRADIENT]
    loads = program.dmas[(program.dmas["source_memory"] == Memory.HBM) & (program.dmas["dtype"] == DType.F32)]
    assert set(loads["descriptor_bytes"]) == {12 * 4}
    assert int(loads["bytes"].sum()) == 2 * 128 * 12 * 4
    assert tile_races(program, TRN1) == 0
