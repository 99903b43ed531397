"""Results that stay in SBUF between groups, and what happens when they have to make room."""

import numpy as np
import pytest

from neuron_tools import hardware
from neuron_tools.compiler.allocate import Allocator, OutOfOnChipMemory
from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.records.program import Memory, Program, Purpose, TensorKind
from neuron_tools.simulator import simulate
from tests.unit.compiler.modules import CORE, compiled, function, module, moved, tensor, tile_races

ROWS, DEPTH, WIDTH = 512, 2048, 1024


def product_and_softmax(rows: int = ROWS, width: int = WIDTH, *, product_of_it: bool = False) -> str:
    """exp(x @ w) is divided by its rows' sums; the sums cannot join a product of so long a contraction."""
    full, row, scalar = tensor((rows, width), "bf16"), tensor((rows,), "bf16"), tensor((), "bf16")
    left, right = tensor((rows, DEPTH), "bf16"), tensor((DEPTH, width), "bf16")
    square, dot = tensor((width, width), "bf16"), "contracting_dims = [1] x [0]"
    lines = [
        f"%zero = stablehlo.constant dense<0.0> : {scalar}",
        f"%p = stablehlo.dot_general %a, %w, {dot} : ({left}, {right}) -> {full}",
        f"%e = stablehlo.exponential %p : {full}",
        f"%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] "
        f": ({full}, {scalar}) -> {row}",
        f"%sb = stablehlo.broadcast_in_dim %s, dims = [0] : ({row}) -> {full}",
        f"%r = stablehlo.divide %e, %sb : {full}",
    ]
    if product_of_it:
        lines[-1] = f"%d = stablehlo.divide %e, %sb : {full}"
        lines.append(f"%q = stablehlo.dot_general %e, %v, {dot} : ({full}, {square}) -> {full}")
        lines.append(f"%r = stablehlo.add %d, %q : {full}")
    return function(f"%a: {left}, %w: {right}, %v: {square}", full, *lines)


def intermediate_bytes(program: Program, destination: Memory) -> int:
    kinds = np.array([tensor.kind for tensor in program.tensors])
    chosen = (program.dmas["destination_memory"] == destination) & (
        kinds[program.dmas["tensor"]] == TensorKind.INTERMEDIATE
    )
    return int(program.dmas["bytes"][chosen].sum())


def test_a_result_that_the_next_group_reads_row_by_row_never_leaves_the_chip():
    program = compiled(product_and_softmax())
    assert intermediate_bytes(program, Memory.HBM) == 0
    assert intermediate_bytes(program, Memory.SBUF) == 0
    assert tile_races(program) == 0


def test_without_residency_it_is_stored_and_loaded():
    program = compile_module(module(product_and_softmax()), CORE, CompilerOptions(keep_on_chip=False))
    assert (
        intermediate_bytes(program, Memory.HBM)
        == intermediate_bytes(program, Memory.SBUF)
        == 2 * ROWS * WIDTH
    )


def test_what_a_product_reads_too_is_turned_on_chip_and_never_stored():
    program = compiled(product_and_softmax(product_of_it=True))
    stored = intermediate_bytes(program, Memory.HBM)
    apart = compile_module(
        module(product_and_softmax(product_of_it=True)), CORE, CompilerOptions(keep_on_chip=False)
    )
    assert stored == 0 < intermediate_bytes(apart, Memory.HBM)
    assert intermediate_bytes(program, Memory.SBUF) < intermediate_bytes(apart, Memory.SBUF)
    assert tile_races(program) == 0


def many_results_of_a_product(count: int, rows: int = 1024, depth: int = 3072, width: int = 768) -> str:
    """A product times several tensors; the epilogue of the next one reads all of them."""
    left, right, full = tensor((rows, depth)), tensor((depth, width)), tensor((rows, width))
    dot = f"contracting_dims = [1] x [0] : ({left}, {right}) -> {full}"
    lines = [f"%p = stablehlo.dot_general %a, %w, {dot}"]
    lines += [f"%y{i} = stablehlo.multiply %p, %c{i} : {full}" for i in range(count)]
    lines.append(f"%s0 = stablehlo.dot_general %b, %v, {dot}")
    lines += [f"%s{i + 1} = stablehlo.add %s{i}, %y{i} : {full}" for i in range(count)]
    lines[-1] = lines[-1].replace(f"%s{count} ", "%r ")
    factors = ", ".join(f"%c{i}: {full}" for i in range(count))
    return function(f"%a: {left}, %b: {left}, %w: {right}, %v: {right}, {factors}", full, *lines)


@pytest.mark.parametrize(("target", "count"), [("trn1", 5), ("trn2", 8)])
def test_results_of_one_product_leave_each_other_room(target, count):
    core = hardware.get(target)
    program = compile_module(module(many_results_of_a_product(count)), core)
    assert not program.warnings
    assert tile_races(program, core) == 0


def test_staying_on_chip_is_no_slower():
    text = product_and_softmax(2048)
    kept = simulate(compiled(text), CORE).duration_ps
    apart = simulate(
        compile_module(module(text), CORE, CompilerOptions(keep_on_chip=False)), CORE
    ).duration_ps
    assert kept < apart


def test_results_too_large_to_stay_go_through_memory():
    program = compiled(product_and_softmax(rows=16 * 1024))
    assert intermediate_bytes(program, Memory.HBM) == 2 * 16 * 1024 * WIDTH
    assert not np.isin(program.dmas["purpose"], (Purpose.SPILL_SAVE, Purpose.SPILL_RELOAD)).any()


@pytest.fixture
def staying(monkeypatch):
    """A list whose one number counts the results that stay in SBUF."""
    plain, free, count = Allocator.allocate, Allocator.release, [0]

    def allocate(self, size, *, at_end=False):
        block = plain(self, size, at_end=at_end)
        count[0] += at_end
        return block

    def release(self, block, tokens):
        count[0] = 0 if block.address + block.size == self.capacity else count[0]
        free(self, block, tokens)

    monkeypatch.setattr(Allocator, "allocate", allocate)
    monkeypatch.setattr(Allocator, "release", release)
    return count


@pytest.fixture
def crowded(staying, monkeypatch):
    """An SBUF in which nothing may be allocated while a result stays."""
    plain = Allocator.allocate

    def allocate(self, size, *, at_end=False):
        if not at_end and self.capacity == CORE.sbuf_bytes_per_partition and staying[0]:
            raise OutOfOnChipMemory("crowded")
        return plain(self, size, at_end=at_end)

    monkeypatch.setattr(Allocator, "allocate", allocate)


def test_a_result_that_has_to_make_room_is_saved_and_reloaded(crowded):
    program = compiled(product_and_softmax())
    purpose, size = program.dmas["purpose"], program.dmas["bytes"]
    for kind in (Purpose.SPILL_SAVE, Purpose.SPILL_RELOAD):
        assert size[purpose == kind].sum() == 2 * ROWS * WIDTH
    saved = {program.tensors[row].kind for row in program.dmas["tensor"][purpose == Purpose.SPILL_SAVE]}
    assert saved == {TensorKind.INTERMEDIATE}
    assert any(operation.opcode == "spill" and operation.shape for operation in program.hlo)
    assert tile_races(program) == 0


def test_a_loop_without_room_for_whole_rows_makes_room_before_it_cuts_them_up(staying, monkeypatch):
    largest = Allocator.largest
    monkeypatch.setattr(
        Allocator, "largest", lambda self: min(largest(self), 2048 if staying[0] else 1 << 30)
    )
    program = compiled(product_and_softmax())
    reloads = program.dmas[program.dmas["purpose"] == Purpose.SPILL_RELOAD]
    assert reloads["bytes"].sum() == 2 * ROWS * WIDTH
    assert (reloads["descriptor_bytes"] == 2 * WIDTH).all()
    assert tile_races(program) == 0


def test_moved_bytes_are_those_of_inputs_and_results_alone():
    program = compiled(product_and_softmax())
    assert moved(program, Memory.SBUF, Memory.HBM) == 2 * ROWS * WIDTH


def test_what_is_only_summed_over_its_rows_is_read_on_chip_however_wide_the_sum():
    """A bias gradient under autocast: bf16, which a product reads too, summed in fp32."""
    left, right, other = (tensor(shape, "bf16") for shape in ((ROWS, 256), (256, WIDTH), (WIDTH, 256)))
    full, wide, result = tensor((ROWS, WIDTH), "bf16"), tensor((ROWS, WIDTH)), tensor((ROWS, 256), "bf16")
    dot, sums = "contracting_dims = [1] x [0]", tensor((WIDTH,))
    lines = (
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%p = stablehlo.dot_general %a, %b, {dot} : ({left}, {right}) -> {full}",
        f"%g = stablehlo.tanh %p : {full}",
        f"%q = stablehlo.dot_general %g, %c, {dot} : ({full}, {other}) -> {result}",
        f"%w = stablehlo.convert %g : ({full}) -> {wide}",
        f"%s = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0] "
        f": ({wide}, tensor<f32>) -> {sums}",
    )
    program = compiled(
        f"func.func @main(%a: {left}, %b: {right}, %c: {other}) -> ({result}, {sums}) {{\n"
        + "\n".join(lines)
        + f"\nreturn %q, %s : {result}, {sums}\n}}"
    )
    operands = 2 * 256 * (ROWS + 2 * WIDTH)
    assert moved(program, Memory.HBM, Memory.SBUF) == operands
    assert moved(program, Memory.SBUF, Memory.HBM) == 2 * 256 * ROWS + 4 * WIDTH
