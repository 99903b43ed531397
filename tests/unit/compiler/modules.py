"""Small modules for the compiler's tests, written as StableHLO text, and measures of Programs."""

from __future__ import annotations

from functools import cache

import numpy as np

from neuron_tools import hardware
from neuron_tools.compiler import hlo
from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.stablehlo import read_module
from neuron_tools.records.program import FrameworkOperation, Memory, Opcode, Program
from neuron_tools.simulator import simulate
from neuron_tools.simulator.check import check

CORE = hardware.get("trn2")


@cache
def _context():
    """A context that knows the StableHLO dialect: torch-mlir loads it with its first lowering."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.passmanager import PassManager

    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        lowering = PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))")
        lowering.run(ir.Module.create().operation)
    return context


def mlir(text: str):
    """An MLIR module of torch-mlir's binding."""
    from torch_mlir import ir

    return ir.Module.parse(text, _context())


def module(body: str, names: tuple[str, ...] = (), **options) -> hlo.Module:
    """The module of a function's text; `names` are framework operations for `loc("fw:0")` and so on."""
    framework = tuple(FrameworkOperation(name) for name in names)
    return read_module(mlir(body), framework=framework, **options)


def function(arguments: str, result: str, *lines: str) -> str:
    """`func.func @main(arguments) -> result { lines; return %r }`; the last line must define %r."""
    return f"func.func @main({arguments}) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result}\n}}"


def unary(opcode: str, type_: str) -> str:
    return function(f"%a: {type_}", type_, f"%r = stablehlo.{opcode} %a : {type_}")


def binary(opcode: str, type_: str) -> str:
    return function(f"%a: {type_}, %b: {type_}", type_, f"%r = stablehlo.{opcode} %a, %b : {type_}")


def tensor(shape, dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def matmul(rows: int, depth: int, columns: int, dtype: str = "bf16", *, turned: bool = False) -> str:
    left, result = tensor((rows, depth), dtype), tensor((rows, columns), dtype)
    right = tensor((columns, depth) if turned else (depth, columns), dtype)
    return function(
        f"%a: {left}, %b: {right}",
        result,
        f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{1 if turned else 0}] "
        f": ({left}, {right}) -> {result}",
    )


def reduction(kind: str, shape, axes, dtype: str = "f32") -> str:
    kept = [extent for axis, extent in enumerate(shape) if axis not in axes]
    source, result = tensor(shape, dtype), tensor(kept, dtype)
    return function(
        f"%a: {source}",
        result,
        f"%z = stablehlo.constant dense<0.0> : tensor<{dtype}>",
        f"%r = stablehlo.reduce(%a init: %z) applies stablehlo.{kind} across dimensions = {list(axes)} "
        f": ({source}, tensor<{dtype}>) -> {result}",
    )


def softmax(rows: int, columns: int, dtype: str = "f32") -> str:
    full, row, scalar = tensor((rows, columns), dtype), tensor((rows,), dtype), f"tensor<{dtype}>"
    return function(
        f"%a: {full}",
        full,
        f"%low = stablehlo.constant dense<-1.0e+30> : {scalar}",
        f"%zero = stablehlo.constant dense<0.0> : {scalar}",
        f"%m = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] "
        f": ({full}, {scalar}) -> {row}",
        f"%mb = stablehlo.broadcast_in_dim %m, dims = [0] : ({row}) -> {full}",
        f"%d = stablehlo.subtract %a, %mb : {full}",
        f"%e = stablehlo.exponential %d : {full}",
        f"%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] "
        f": ({full}, {scalar}) -> {row}",
        f"%sb = stablehlo.broadcast_in_dim %s, dims = [0] : ({row}) -> {full}",
        f"%r = stablehlo.divide %e, %sb : {full}",
    )


def layer_norm(rows: int, columns: int, dtype: str = "f32") -> str:
    full, row, scalar = tensor((rows, columns), dtype), tensor((rows,), dtype), f"tensor<{dtype}>"
    weight = tensor((columns,), dtype)

    def mean(name: str, of: str) -> list[str]:
        return [
            f"%{name}s = stablehlo.reduce(%{of} init: %zero) applies stablehlo.add across dimensions = [1] "
            f": ({full}, {scalar}) -> {row}",
            f"%{name} = stablehlo.divide %{name}s, %n : {row}",
        ]

    return function(
        f"%a: {full}, %w: {weight}, %b: {weight}",
        full,
        f"%zero = stablehlo.constant dense<0.0> : {scalar}",
        f"%n = stablehlo.constant dense<{float(columns)}> : {row}",
        f"%eps = stablehlo.constant dense<1.0e-05> : {row}",
        *mean("mean", "a"),
        f"%mb = stablehlo.broadcast_in_dim %mean, dims = [0] : ({row}) -> {full}",
        f"%c = stablehlo.subtract %a, %mb : {full}",
        f"%q = stablehlo.multiply %c, %c : {full}",
        *mean("var", "q"),
        f"%v = stablehlo.add %var, %eps : {row}",
        f"%i = stablehlo.rsqrt %v : {row}",
        f"%ib = stablehlo.broadcast_in_dim %i, dims = [0] : ({row}) -> {full}",
        f"%x = stablehlo.multiply %c, %ib : {full}",
        f"%wb = stablehlo.broadcast_in_dim %w, dims = [1] : ({weight}) -> {full}",
        f"%bb = stablehlo.broadcast_in_dim %b, dims = [1] : ({weight}) -> {full}",
        f"%y = stablehlo.multiply %x, %wb : {full}",
        f"%r = stablehlo.add %y, %bb : {full}",
    )


def compiled(text: str, core=CORE, names: tuple[str, ...] = (), **options) -> Program:
    """Compile a function's text and check that a core could run the Program."""
    program = compile_module(module(text, names), core, **options)
    check(program, core)
    return program


def opcodes(program: Program) -> list[str]:
    """Names of all opcodes in the program, sorted, each once."""
    return sorted({Opcode(int(code)).name for code in program.instructions["opcode"]})


def opcode_names(module_: hlo.Module) -> list[str]:
    """Opcodes of a module's operations, in order."""
    return [operation.opcode for operation in module_.operations]


def moved(program: Program, source: Memory, destination: Memory) -> int:
    """Bytes that DMA moves from one memory to another."""
    chosen = (program.dmas["source_memory"] == source) & (program.dmas["destination_memory"] == destination)
    return int(program.dmas["bytes"][chosen].sum())


def computed(program: Program, *names: str) -> int:
    """Partitions x elements over all instructions with these opcodes."""
    chosen = np.isin(program.instructions["opcode"], [Opcode[name] for name in names])
    rows = program.instructions[chosen]
    return int((rows["partitions"].astype(np.int64) * rows["elements"]).sum())


def multiply_accumulates(program: Program) -> int:
    """K x M x N over all MATMULs."""
    rows = program.instructions[program.instructions["opcode"] == Opcode.MATMUL]
    return int((rows["partitions"].astype(np.int64) * rows["columns"] * rows["elements"]).sum())


def layers(count: int, width: int = 256, rows: int = 256, dtype: str = "bf16") -> str:
    """`count` equal residual blocks, x + tanh(x @ w) * softmax-like row sum; `loc("fw:k")` is block k."""
    full, weight = tensor((rows, width), dtype), tensor((width, width), dtype)
    row, scalar = tensor((rows,), dtype), f"tensor<{dtype}>"
    arguments = ", ".join([f"%x0: {full}", *(f"%w{index}: {weight}" for index in range(count))])
    lines = [f"%zero = stablehlo.constant dense<0.0> : {scalar}"]
    for index in range(count):
        where = f'loc("fw:{index}")'
        after = "%r" if index == count - 1 else f"%x{index + 1}"
        lines += [
            f"%p{index} = stablehlo.dot_general %x{index}, %w{index}, contracting_dims = [1] x [0] "
            f": ({full}, {weight}) -> {full} {where}",
            f"%t{index} = stablehlo.tanh %p{index} : {full} {where}",
            f"%s{index} = stablehlo.reduce(%t{index} init: %zero) applies stablehlo.add across dimensions = "
            f"[1] : ({full}, {scalar}) -> {row} {where}",
            f"%b{index} = stablehlo.broadcast_in_dim %s{index}, dims = [0] : ({row}) -> {full} {where}",
            f"%d{index} = stablehlo.divide %t{index}, %b{index} : {full} {where}",
            f"%e{index} = stablehlo.exponential %d{index} : {full} {where}",
            f"%m{index} = stablehlo.multiply %e{index}, %t{index} : {full} {where}",
            f"{after} = stablehlo.add %x{index}, %m{index} : {full} {where}",
        ]
    return function(arguments, full, *lines)


def tile_races(program: Program, core=CORE) -> int:
    """Tiles whose bytes another tile uses before their own last use has ended, in simulated time."""
    simulation = simulate(program, core)
    begin = np.full(len(program.tiles), np.iinfo(np.int64).max)
    end = np.full(len(program.tiles), -1, np.int64)
    for column in ("source", "second_source", "destination"):
        tiles = program.instructions[column]
        used = tiles >= 0
        np.minimum.at(begin, tiles[used], simulation.start_ps[used])
        np.maximum.at(end, tiles[used], simulation.end_ps[used])
    tiles = program.dmas["tile"]
    np.minimum.at(begin, tiles[tiles >= 0], simulation.dma_start_ps[tiles >= 0])
    np.maximum.at(end, tiles[tiles >= 0], simulation.dma_end_ps[tiles >= 0])
    return sum(_races(program, memory, begin, end) for memory in (Memory.SBUF, Memory.PSUM))


def _races(program: Program, memory: Memory, begin: np.ndarray, end: np.ndarray) -> int:
    rows = np.flatnonzero((program.tiles["memory"] == memory) & (end >= 0))
    busy_until = np.full(CORE.sbuf_bytes_per_partition, -1, np.int64)
    races = 0
    for row in rows[np.argsort(begin[rows], kind="stable")]:
        tile = program.tiles[row]
        taken = slice(int(tile["address"]), int(tile["address"]) + int(tile["bytes_per_partition"]))
        races += int(busy_until[taken].max(initial=-1) > begin[row])
        busy_until[taken] = np.maximum(busy_until[taken], end[row])
    return races


def attention(
    heads: int = 2, rows: int = 256, columns: int = 256, depth: int = 64, *, causal: bool = False,
    dtype: str = "bf16", returns_weights: bool = False,
) -> str:  # fmt: skip
    """softmax(q @ k.T / 8, hidden above the diagonal if causal) @ v, statistics in f32."""
    query, key = tensor((heads, rows, depth), dtype), tensor((heads, columns, depth), dtype)
    half, full = tensor((heads, rows, columns), dtype), tensor((heads, rows, columns))
    row, square = tensor((heads, rows)), (rows, columns)
    lines = [
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%scale = stablehlo.constant dense<0.125> : {full}",
        f"%hidden = stablehlo.constant dense<0xFF800000> : {full}",
        "%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
        f": ({query}, {key}) -> {half}",
        f"%s1 = stablehlo.convert %s : ({half}) -> {full}",
        f"%s2 = stablehlo.multiply %s1, %scale : {full}",
    ]
    if causal:
        lines += [
            f"%i = stablehlo.iota dim = 0 : {tensor(square, 'i32')}",
            f"%j = stablehlo.iota dim = 1 : {tensor(square, 'i32')}",
            f"%c = stablehlo.compare GE, %i, %j : ({tensor(square, 'i32')}, {tensor(square, 'i32')}) "
            f"-> {tensor(square, 'i1')}",
            f"%cb = stablehlo.broadcast_in_dim %c, dims = [1, 2] : ({tensor(square, 'i1')}) "
            f"-> {tensor((heads, *square), 'i1')}",
            f"%x = stablehlo.select %cb, %s2, %hidden : {tensor((heads, *square), 'i1')}, {full}",
        ]
    else:
        lines += [f"%x = stablehlo.add %s2, %s2 : {full}"]
    lines += [
        f"%m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] "
        f": ({full}, tensor<f32>) -> {row}",
        f"%mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : ({row}) -> {full}",
        f"%d = stablehlo.subtract %x, %mb : {full}",
        f"%e = stablehlo.exponential %d : {full}",
        f"%t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] "
        f": ({full}, tensor<f32>) -> {row}",
        f"%tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : ({row}) -> {full}",
        f"%p = stablehlo.divide %e, %tb : {full}",
        f"%w = stablehlo.convert %p : ({full}) -> {half}",
        "%r = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
        f": ({half}, {key}) -> {query}",
    ]
    text = function(f"%q: {query}, %k: {key}, %v: {key}", query, *lines)
    if returns_weights:
        text = text.replace(f"-> {query} {{", f"-> ({query}, {half}) {{")
        text = text.replace(f"return %r : {query}", f"return %r, %w : {query}, {half}")
    return text
