"""What is different in a what-if run: a hardware figure, the cost of chosen rows, the precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.executions import Origin, Origins
from neuron_profile.analysis.whatif.fitting_tiles import with_fitting_tiles
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.analysis.whatif.own_buffers import with_own_buffers
from neuron_profile.analysis.whatif.spills import spills
from neuron_tools.arrays import Mask
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore, apply_settings
from neuron_tools.records.program import (
    READ_COLUMNS,
    DType,
    Engine,
    Flag,
    FrameworkOperation,
    HloOperation,
    Memory,
    Opcode,
    Program,
)
from neuron_tools.simulator.cost_scale import CostScale

Parts = npt.NDArray[np.float64]

KINDS = ("op", "operation", "module", "line", "engine", "opcode", "dma", "spill")
_LINE = re.compile(r"^(.*):(\d+)$")
_TURNED = "turned."
"""Tensors that the compiler keeps turned operands in."""
_TENSOR_OPCODES = (int(Opcode.MATMUL), int(Opcode.LDWEIGHTS), int(Opcode.TRANSPOSE))


@dataclass(frozen=True)
class Variant:
    """A program as it would run."""

    program: Program
    core: NeuronCore
    scale: CostScale


def of_both_cores(variant: Variant, make: Callable[[Variant], Variant]) -> Variant:
    """What `make` makes of a program; of both where the second physical core runs another one."""
    program = variant.program
    if program.second is None:
        return make(variant)
    first = replace(program, second=None)
    own = make(replace(variant, program=first))
    factors = variant.scale.second or CostScale.unchanged(program.second)
    other = make(Variant(program.second, variant.core, factors))
    if own.program is not first or other.program is not program.second:
        program = replace(own.program, second=other.program)
    return Variant(program, own.core, replace(own.scale, second=other.scale))


@frozen
class Change:
    """One difference.

    Attributes:
        text: As the user writes it: "op:softmax=0"; "" of a change that only a rule makes.
        apply: Makes the variant of a program; the origins are those of an eager execution, else empty.
        by_origin: Whether executions of one eager program may differ.
    """

    text: str
    apply: Callable[[Variant, Origins], Variant]
    by_origin: bool = False


def parse_change(text: str) -> Change:
    """Read a change.

    Args:
        text: "FIGURE=VALUE" (a hardware figure, as `--set` of capture), "KIND:WHAT=FACTOR" (costs of rows
            times a factor; KIND one of `KINDS`, "dma=0" and "spill=0" need no WHAT), "dtype=bf16",
            "buffers=own" or "tiles=fit".

    Raises:
        UsageError: It is none of these.
    """
    name, separator, value = text.rpartition("=")
    if not separator or not name.strip():
        raise UsageError(
            f"The change {text!r} is not understood: write FIGURE=VALUE, {'|'.join(KINDS)}:WHAT=FACTOR "
            "or dtype=bf16."
        )
    name, value = name.strip(), value.strip()
    kind, _, what = name.partition(":")
    if name == "dtype":
        return _precision(text, value)
    if kind in KINDS:
        return scale_change(text, kind, what, _factor(text, value))
    if name == "dma_latency":
        return _dma_latency(text, _factor(text, value))
    if name == "buffers":
        return _buffers(text, value)
    if name == "tiles":
        return _tiles(text, value)
    return Change(text, lambda variant, origins: replace(variant, core=apply_settings(variant.core, [text])))


def scale_change(text: str, kind: str, what: str, factor: float) -> Change:
    """Costs of the chosen rows times a factor; of fused operations, that of the chosen ones' shares."""

    def apply(variant: Variant, origins: Origins) -> Variant:
        instructions, dmas = _chosen(variant.program, origins, kind, what)
        scale = CostScale(1.0 - instructions * (1.0 - factor), 1.0 - dmas * (1.0 - factor))
        return replace(variant, scale=variant.scale.times(scale))

    named = kind in ("module", "line", "op", "operation") or (kind == "dma" and bool(what))
    return Change(text, apply, by_origin=named)


def rows_change(select: Callable[[Program], tuple[Mask, Mask]], factor: float) -> Change:
    """Costs of the instructions and DMAs that a rule selects, times a factor."""

    def apply(variant: Variant, origins: Origins) -> Variant:
        instructions, dmas = select(variant.program)
        scale = CostScale(np.where(instructions, factor, 1.0), np.where(dmas, factor, 1.0))
        return replace(variant, scale=variant.scale.times(scale))

    return Change("", apply)


def combined(changes: Sequence[Change]) -> Change:
    """All changes, one after the other."""

    def apply(variant: Variant, origins: Origins) -> Variant:
        for change in changes:
            variant = change.apply(variant, origins)
        return variant

    text = ", ".join(change.text for change in changes)
    return Change(text, apply, any(change.by_origin for change in changes))


def _chosen(program: Program, origins: Origins, kind: str, what: str) -> tuple[Parts, Parts]:
    """The part of each instruction and DMA that a selector means, 0 to 1."""
    table, dmas = program.instructions, program.dmas
    if kind == "engine":
        names = {engine.name.lower(): int(engine) for engine in Engine}
        if what.lower() not in names:
            raise UsageError(f"There is no engine {what!r}: choose one of {', '.join(names)}.")
        return (table["engine"] == names[what.lower()]).astype(np.float64), np.zeros(len(dmas))
    if kind == "opcode":
        codes = [int(code) for code in Opcode if code.name.lower() == what.lower()]
        if not codes:
            raise UsageError(f"There is no instruction {what!r}.")
        return np.isin(table["opcode"], codes).astype(np.float64), np.zeros(len(dmas))
    if kind == "spill":
        return np.zeros(len(table)), spills(program).astype(np.float64)
    if kind == "dma":
        chosen = _by_hlo(program, origins, "op", what) if what else None
        moved = np.ones(len(dmas)) if chosen is None else _at(chosen, dmas["hlo"])
        return np.zeros(len(table)), moved
    chosen = _by_hlo(program, origins, kind, what)
    instructions, moved = _at(chosen, table["hlo"]), _at(chosen, dmas["hlo"])
    lines = kernel_lines(program)
    if kind == "line" and lines is not None:
        at_line = np.array([place_is(what, *place) for place in lines.places], np.float64)
        instructions = np.maximum(instructions, _at(at_line, lines.instruction))
        moved = np.maximum(moved, _at(at_line, lines.dma))
    return instructions, moved


def _at(chosen: Parts, rows: npt.NDArray[np.signedinteger[Any]]) -> Parts:
    if not len(chosen):
        return np.zeros(len(rows))
    return np.where(rows >= 0, chosen[np.maximum(rows, 0)], 0.0)


def _by_hlo(program: Program, origins: Origins, kind: str, what: str) -> Parts:
    """The part of each HLO operation that a selector means: the shares of the operations that it matches."""
    matches = _MATCHERS[kind](what)
    wanted = what.lower()
    parts = np.zeros(len(program.hlo))
    for row, hlo in enumerate(program.hlo):
        own = kind == "op" and any(wanted in name.lower() for name in (hlo.name, hlo.opcode))
        operations = framework_shares(program, hlo, origins)
        parts[row] = 1.0 if own else min(1.0, sum(share for op, share in operations if matches(op)))
    return parts


def framework_shares(
    program: Program, hlo: HloOperation, origins: Origins
) -> list[tuple[FrameworkOperation | Origin, float]]:
    """The framework operations that an HLO operation was made of, and the part of it that each has.

    Args:
        origins: Where the execution's operations came from; empty where the program knows it itself.
    """
    shares = _shares(hlo)
    if not origins:
        return [
            (program.framework[row], share)
            for row, share in zip(hlo.framework, shares)
            if row < len(program.framework)
        ]
    if len(origins) != len(program.framework):
        return [(origins[0], 1.0)]
    return [(origins[row], share) for row, share in zip(hlo.framework, shares)] or [(origins[0], 1.0)]


def _shares(hlo: HloOperation) -> list[float]:
    """The shares, adding up to 1; equal ones where they are not known."""
    total = sum(hlo.shares)
    if len(hlo.shares) != len(hlo.framework) or total <= 0:
        return [1.0 / len(hlo.framework)] * len(hlo.framework)
    return [share / total for share in hlo.shares]


Matches = Callable[[FrameworkOperation | Origin], bool]


def _name(operation: FrameworkOperation | Origin) -> str:
    return operation.operation if isinstance(operation, Origin) else operation.name


def _operation_matcher(what: str) -> Matches:
    return lambda operation: what.lower() in _name(operation).lower()


def _exact_matcher(what: str) -> Matches:
    return lambda operation: _name(operation) == what


def _module_matcher(what: str) -> Matches:
    wanted = what.strip("/").replace("/", ".")

    def matches(operation: FrameworkOperation | Origin) -> bool:
        layer = operation.layer if isinstance(operation, Origin) else operation.module_path
        path = layer.strip("/").replace("/", ".")
        return path == wanted or path.startswith(wanted + ".")

    return matches


def _line_matcher(what: str) -> Matches:
    file, line = _file_and_line(what)

    def matches(operation: FrameworkOperation | Origin) -> bool:
        if isinstance(operation, Origin):
            return operation.line == line and _same_file(operation.file, file)
        return (
            bool(operation.stack)
            and operation.stack[0].line == line
            and _same_file(operation.stack[0].file, file)
        )

    return matches


def place_is(what: str, path: str, line: int) -> bool:
    """Whether a path and line are what "FILE:NUMBER" means.

    Raises:
        UsageError: It is not of this form.
    """
    file, number = _file_and_line(what)
    return line == number and _same_file(path, file)


def _file_and_line(what: str) -> tuple[str, int]:
    match = _LINE.match(what)
    if match is None:
        raise UsageError(f"The line {what!r} is not understood: write FILE:NUMBER.")
    return match[1], int(match[2])


def _same_file(path: str, wanted: str) -> bool:
    return path == wanted or path.endswith("/" + wanted)


_MATCHERS: Mapping[str, Callable[[str], Matches]] = {
    "op": _operation_matcher,
    "operation": _exact_matcher,
    "module": _module_matcher,
    "line": _line_matcher,
}


def _precision(text: str, value: str) -> Change:
    """Everything in fp32 computed and moved as bf16 instead."""
    if value != "bf16":
        raise UsageError(f"The change {text!r} is not understood: only dtype=bf16 can be simulated.")
    return Change(text, lambda variant, origins: in_bf16(variant))


def narrow_line(file: str, line: int) -> Change:
    """The fp32 programs of operators that a line called, in bf16; compiled modules stay as they are."""
    matches = _line_matcher(f"{file}:{line}")

    def apply(variant: Variant, origins: Origins) -> Variant:
        return in_bf16(variant) if origins and all(map(matches, origins)) else variant

    return Change("", apply, by_origin=True)


def in_bf16(variant: Variant) -> Variant:
    """The variant with fp32 products and transfers in bf16: one pass instead of four, half the bytes.

    Where all that a compiler's program loads fits SBUF in bf16, each tensor is loaded once, as early as its
    queue allows.
    """
    fits = _fits(variant.program, variant.core)
    program = with_own_buffers(variant.program) if fits else variant.program
    table, dmas = program.instructions.copy(), program.dmas.copy()
    f32, bf16 = int(DType.F32), int(DType.BF16)
    second = (table["flags"] & int(Flag.FP32_HALF)) != 0
    # The two instructions (LOW, HIGH) of an fp32 product become one.
    extra = second & (np.cumsum(second) % 2 == 0)
    for column in ("input_dtype", "output_dtype"):
        to_psum = (column == "output_dtype") & np.isin(table["opcode"], _TENSOR_OPCODES)
        table[column] = np.where((table[column] == f32) & ~to_psum, bf16, table[column])
    table["flags"] &= ~np.uint16(int(Flag.FP32_HALF))
    wide = dmas["dtype"] == f32
    for column in ("bytes", "descriptor_bytes"):
        dmas[column] = np.where(wide, np.maximum(dmas[column] // 2, 1), dmas[column])
    dmas["dtype"] = np.where(wide, bf16, dmas["dtype"])
    unneeded = extra | _turned_for_fp32(program)
    scale = CostScale(np.where(unneeded, 0.0, 1.0), _share_moved(program, fits))
    changed = replace(program, instructions=table, dmas=dmas)
    return replace(variant, program=changed, scale=variant.scale.times(scale))


def _turned_for_fp32(program: Program) -> Mask:
    """Transposes of fp32 operands on the Tensor engine, their stationary operands, the copies behind them.

    The compiler has none of them in bf16, which DMA turns on its way; a kernel's own transposes stay.
    """
    table = program.instructions
    if kernel_lines(program) is not None:
        return np.zeros(len(table), bool)
    turning = (table["opcode"] == int(Opcode.TRANSPOSE)) | ((table["flags"] & int(Flag.TRANSPOSE)) != 0)
    turning &= table["input_dtype"] == int(DType.F32)
    turned = np.unique(table["destination"][turning])
    copies = (table["opcode"] == int(Opcode.TENSOR_COPY)) & (table["source"] >= 0)
    unneeded: Mask = turning | (copies & np.isin(table["source"], turned))
    tensor = np.flatnonzero(np.isin(table["opcode"], _TENSOR_OPCODES))
    is_load = table["opcode"][tensor[:-1]] == int(Opcode.LDWEIGHTS)
    unneeded[tensor[:-1][is_load & turning[tensor[1:]]]] = True
    return unneeded


def _share_moved(program: Program, loaded_once: bool) -> Parts:
    """(DMAs,) the part of each transfer that is left in bf16.

    Operands that only fp32 has to turn go to no place of their own in HBM: what was loaded to be turned is
    loaded where the turned one was.

    Args:
        loaded_once: Whether all that is loaded has room in SBUF, so that no tensor is loaded twice.
    """
    share, dmas = np.ones(len(program.dmas)), program.dmas
    if kernel_lines(program) is not None or not program.tensors:
        return share
    turned = _of_turned(program)
    into_sbuf = dmas["destination_memory"] == int(Memory.SBUF)
    share[turned & ~into_sbuf] = 0.0
    to_turn = _loaded_to_be_turned(program, turned & ~into_sbuf)
    share[to_turn] = 0.0
    if loaded_once:
        loads = _loads(program) & ~to_turn
        tensors = dmas["tensor"][loads]
        loaded = np.bincount(tensors, weights=dmas["bytes"][loads], minlength=len(program.tensors))
        sizes = np.array([tensor.byte_count for tensor in program.tensors], np.float64)
        share[loads] = np.minimum(1.0, sizes / np.maximum(loaded, 1))[tensors]
    return share


def _loads(program: Program) -> Mask:
    dmas = program.dmas
    from_hbm = dmas["source_memory"] == int(Memory.HBM)
    loads: Mask = from_hbm & (dmas["destination_memory"] == int(Memory.SBUF)) & (dmas["tensor"] >= 0)
    return loads


def _of_turned(program: Program) -> Mask:
    """(DMAs,) whether each moves an operand that only fp32 turns to a place of its own."""
    is_turned = np.array([tensor.name.startswith(_TURNED) for tensor in program.tensors])
    known = program.dmas["tensor"] >= 0
    turned: Mask = known & is_turned[np.maximum(program.dmas["tensor"], 0)]
    return turned


def _loaded_to_be_turned(program: Program, stores: Mask) -> Mask:
    """(DMAs,) the loads of tiles that are only read to be turned and stored again."""
    table, dmas = program.instructions, program.dmas
    copies = (table["opcode"] == int(Opcode.TENSOR_COPY)) & np.isin(
        table["destination"], dmas["tile"][stores & (dmas["tile"] >= 0)]
    )
    turning = np.isin(table["destination"], table["source"][copies & (table["source"] >= 0)])
    turning |= table["opcode"] == int(Opcode.LDWEIGHTS)
    read = np.concatenate([table["source"][~turning], *(table[column] for column in READ_COLUMNS[1:])])
    turned = np.setdiff1d(table["source"][turning & (table["source"] >= 0)], read)
    loads: Mask = _loads(program) & (dmas["tile"] >= 0) & np.isin(dmas["tile"], turned)
    return loads if stores.any() else np.zeros(len(dmas), bool)


def _fits(program: Program, core: NeuronCore) -> bool:
    """Whether all that a compiler's program loads has room in half of SBUF once it is in bf16."""
    if kernel_lines(program) is not None or not program.tensors:
        return False
    loaded = np.unique(program.dmas["tensor"][_loads(program)])
    size_bytes = sum(
        each.byte_count for row in loaded if not (each := program.tensors[row]).name.startswith(_TURNED)
    )
    return bool(size_bytes <= core.sbuf_bytes)


def _buffers(text: str, value: str) -> Change:
    """Every tile in a buffer of its own: loads run ahead of the work on the tile before."""
    if value != "own":
        raise UsageError(f"The change {text!r} is not understood: only buffers=own can be simulated.")
    return Change(text, lambda variant, origins: replace(variant, program=with_own_buffers(variant.program)))


def _tiles(text: str, value: str) -> Change:
    """Kernels without spills: their work in tiles that fit SBUF."""
    if value != "fit":
        raise UsageError(f"The change {text!r} is not understood: only tiles=fit can be simulated.")

    def apply(variant: Variant, origins: Origins) -> Variant:
        program, scale = with_fitting_tiles(variant.program, variant.core, variant.scale)
        return replace(variant, program=program, scale=scale)

    return Change(text, apply)


def _dma_latency(text: str, factor: float) -> Change:
    """All that passes between a DMA's trigger and its bytes, times a factor."""

    def apply(variant: Variant, origins: Origins) -> Variant:
        names = [name for name in _DMA_LATENCIES if getattr(variant.core, name, 0)]
        values = {name: getattr(variant.core, name) * factor for name in names}
        return replace(variant, core=variant.core.replace(**values))

    return Change(text, apply)


_DMA_LATENCIES = (
    "dma_read_startup_ns", "dma_write_startup_ns", "dma_software_read_startup_ns",
    "dma_software_write_startup_ns", "dma_semaphore_ns", "dma_semaphore_latency_ns",
    "dma_hardware_read_delay_ns", "dma_hardware_write_delay_ns", "dma_software_read_delay_ns",
    "dma_software_write_delay_ns", "dma_prebuilt_delay_ns",
)  # fmt: skip


def _factor(text: str, value: str) -> float:
    try:
        factor = float(value.removesuffix("x"))
    except ValueError:
        raise UsageError(f"The change {text!r} is not understood: {value!r} is no factor.") from None
    if not 0 <= factor < 1e6:
        raise UsageError(f"The change {text!r} is not understood: the factor must be 0 or more.")
    return factor
