"""The three selective-scan kernels of the NKI Mamba tutorial (aws-neuron/nki-samples tutorials/fused_mamba).

Rows of B and C are broadcast over the partitions by the Tensor engine (a matmul with a column of ones), so
they arrive in PSUM: a tile of at most one bank is read from there at full rate by the multiplications; a
longer one is copied to SBUF by the Scalar engine. What does not depend on the state (delta x u) is computed
once where the loop over states is inside. Where the live tiles of the loop exceed SBUF, what stays the same
for all states (delta, then delta x u) is read again from HBM for every state.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fidelity_kernels.kernel import Kernel, Ring, Slot
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Program

BANK_ELEMENTS = 512
LIVE_TILES = 8
"""delta, delta x u, the sum, exp(delta A), both broadcasts, the scan's input and its result."""


def scan_v1(target: str, sequence: int, channels: int, states: int) -> Program:
    """States outside, channel tiles inside: every tile is loaded for every state."""
    kernel = _Scan(target, "mamba_v1", sequence)
    tiles = channels // 128
    sums = kernel.sbuf(tiles, sequence)
    for tile in sums:
        kernel.compute(Engine.VECTOR, Opcode.MEMSET, tile, [], elements=sequence)
    for _ in range(states):
        for tile in sums:
            inputs = kernel.load_inputs()
            kernel.product(inputs)
            kernel.step(inputs, tile, 0, sequence)
    for tile in sums:
        kernel.store(tile, 4 * sequence, strided=False)
    return kernel.finish()


def scan_v2(target: str, sequence: int, channels: int, states: int) -> Program:
    """Channel tiles outside: delta and u are loaded once, the whole sequence at a time."""
    return _channels_outside(target, "mamba_v2", channels, states, sequence, sequence)


def scan_v3(target: str, sequence: int, channels: int, states: int) -> Program:
    """As v2, in pieces of 512 of the sequence; the scan's last value is carried over."""
    return _channels_outside(target, "mamba_v3", channels, states, sequence, BANK_ELEMENTS)


def _channels_outside(
    target: str, name: str, channels: int, states: int, sequence: int, piece: int
) -> Program:
    kernel = _Scan(target, name, piece, sequence)
    sums = Ring(kernel.sbuf(1, sequence))
    missing = max(0, LIVE_TILES * 4 * piece - kernel.core.sbuf_bytes_per_partition)
    for _ in range(channels // 128):
        total = sums.take()
        kernel.compute(Engine.VECTOR, Opcode.MEMSET, total, [], elements=sequence)
        inputs = kernel.load_inputs()
        kernel.product(inputs)
        for _ in range(states):
            for index, slot in enumerate((inputs.delta, inputs.product)):
                if (size := min(missing - index * 4 * piece, 4 * piece)) > 0:
                    slot.readers = (*slot.readers, total.written)
                    kernel.load(slot, size, strided=False)
            for start in range(0, sequence, piece):
                kernel.step(inputs, total, start, piece)
        kernel.store(total, 4 * sequence, strided=False)
    return kernel.finish()


@dataclass(slots=True)
class _Inputs:
    delta: Slot
    other: Slot
    product: Slot


class _Scan(Kernel):
    def __init__(self, target: str, name: str, piece: int, sequence: int = 0) -> None:
        super().__init__(name, target, DType.F32)
        self.sequence = sequence or piece
        copies = 2 if LIVE_TILES * 8 * self.sequence <= self.core.sbuf_bytes_per_partition else 1
        self.inputs = Ring(self.sbuf(3 * copies, self.sequence))
        self.exponents = Ring(self.sbuf(copies, piece))
        self.scans = Ring(self.sbuf(2 * copies, piece))
        self.rows = Ring(self.sbuf(8, piece // 128))
        self.scales = Ring(self.sbuf(8, 1))
        self.ones = self.sbuf(1, 128)[0]
        self.broadcasts = Ring(self.psum(4, BANK_ELEMENTS))
        self.copies = Ring(self.sbuf(2, piece)) if piece > BANK_ELEMENTS else None
        self.carry = self.sbuf(1, 1)[0]

    def load_inputs(self) -> _Inputs:
        inputs = _Inputs(self.inputs.take(), self.inputs.take(), self.inputs.take())
        self.load(inputs.delta, 4 * self.sequence, strided=False)
        self.load(inputs.other, 4 * self.sequence, strided=False)
        return inputs

    def product(self, inputs: _Inputs) -> None:
        self.compute(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, inputs.product, [inputs.delta, inputs.other],
            elements=self.sequence,
        )  # fmt: skip

    def step(self, inputs: _Inputs, total: Slot, start: int, elements: int) -> None:
        """One state of one piece: exp, multiply by B, scan, multiply by C, add."""
        exponent, scan = self.exponents.take(), self.scans.take()
        if start == 0:
            scale = self.scales.take()
            self.load(scale, 4)
            self.scale = scale
        self.compute(Engine.SCALAR, Opcode.ACTIVATE, exponent, [inputs.delta, self.scale], elements=elements)
        self._multiply_row(scan, inputs.product, elements)
        self.compute(Engine.VECTOR, Opcode.TENSOR_TENSOR_SCAN, scan, [exponent, scan], elements=elements)
        if elements < self.sequence:
            self.compute(Engine.VECTOR, Opcode.TENSOR_COPY, self.carry, [scan], elements=1)
        self._multiply_row(scan, scan, elements)
        self.compute(Engine.VECTOR, Opcode.TENSOR_TENSOR, total, [total, scan], elements=elements)

    def _multiply_row(self, result: Slot, factor: Slot, elements: int) -> None:
        """Load one row, broadcast it over the partitions, multiply by it."""
        row = self.rows.take()
        self.load(row, 4 * elements, rows=1)
        copy = self.copies.take() if self.copies else None
        bank = self.broadcasts.take()
        for first in range(0, elements, BANK_ELEMENTS):
            if first:
                bank = self.broadcasts.take()
            self.matmul(self.ones, row, bank, first=True, elements=BANK_ELEMENTS)
            if copy:
                self.compute(
                    Engine.SCALAR, Opcode.TENSOR_COPY, copy, [bank], elements=BANK_ELEMENTS,
                    memory=Memory.PSUM,
                )  # fmt: skip
        self.compute(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, result, [factor, copy or bank], elements=elements,
            flags=Flag.NONE if copy else Flag.SECOND_OPERAND_PSUM,
        )  # fmt: skip
