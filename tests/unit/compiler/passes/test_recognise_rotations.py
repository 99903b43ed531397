from neuron_tools.compiler.passes.dead_code import eliminate_dead_code
from neuron_tools.compiler.passes.recognise_rotations import recognise_rotations
from neuron_tools.records.program import Memory
from tests.unit.compiler.modules import compiled, function, module, moved, opcode_names, tensor

WHOLE, HALF = tensor((256, 128), "bf16"), tensor((256, 64), "bf16")


def rotary(second: str = "0:64") -> str:
    """x * c + rotate_half(x) * s."""
    return function(
        f"%x: {WHOLE}, %c: {WHOLE}, %s: {WHOLE}", WHOLE,
        f"%h = stablehlo.slice %x [0:256, 64:128] : ({WHOLE}) -> {HALF}",
        f"%l = stablehlo.slice %x [0:256, {second}] : ({WHOLE}) -> {HALF}",
        f"%n = stablehlo.negate %h : {HALF}",
        f"%t = stablehlo.concatenate %n, %l, dim = 1 : ({HALF}, {HALF}) -> {WHOLE}",
        f"%p = stablehlo.multiply %x, %c : {WHOLE}",
        f"%q = stablehlo.multiply %t, %s : {WHOLE}",
        f"%r = stablehlo.add %p, %q : {WHOLE}",
    )  # fmt: skip


def test_rotated_halves_are_one_operation():
    after = eliminate_dead_code(recognise_rotations(module(rotary())))
    assert opcode_names(after) == ["rotate_columns", "multiply", "multiply", "add"]
    assert after.operations[0].attributes == {"columns": 128, "signs": True}


def test_pieces_of_different_rows_are_not():
    text = rotary().replace("%x [0:256, 64:128]", "%c [0:256, 64:128]")
    assert "rotate_columns" not in opcode_names(recognise_rotations(module(text)))


def test_a_rotary_embedding_is_read_once_and_written_once():
    program = compiled(rotary())
    assert [operation.opcode for operation in program.hlo] == ["fusion"]
    assert moved(program, Memory.HBM, Memory.SBUF) == 3 * 256 * 128 * 2
    assert moved(program, Memory.SBUF, Memory.HBM) == 256 * 128 * 2
    assert moved(program, Memory.HBM, Memory.HBM) == 0
