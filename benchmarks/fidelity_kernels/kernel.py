"""A kernel under construction: tiles that reuse their memory, loads, stores, matmuls and elementwise work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuron_tools import hardware
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Program, QueueKind
from neuron_tools.simulator import ProgramBuilder

DTYPES = {"fp32": DType.F32, "bf16": DType.BF16, "": DType.BF16}
BANK_BYTES = 2048


@dataclass(slots=True)
class Slot:
    """One tile of memory: its row, who wrote it last and who read it since."""

    tile: int
    elements: int
    written: int = -1
    readers: tuple[int, ...] = ()


class Ring:
    """Slots used in turn; a slot is free again when its readers are done."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = list(slots)
        self._next = 0

    def take(self) -> Slot:
        """The next slot, with the readers that its new writer has to wait for."""
        slot = self._slots[self._next]
        self._next = (self._next + 1) % len(self._slots)
        return slot


class Kernel:
    """Builds one core's Program, on tiles of 128 partitions unless said.

    Loads go through the Sync engine's queue and stores through the Scalar engine's: hardware descriptors
    where the generation makes them, descriptors built beforehand where it does not.
    """

    def __init__(self, name: str, target: str, dtype: DType) -> None:
        self.core: NeuronCore = hardware.get(target, lnc=1)
        self.build = ProgramBuilder(name, target=target)
        self.dtype = dtype
        dynamic = self.core.generation >= 3
        kind = QueueKind.HARDWARE_DYNAMIC if dynamic else QueueKind.INPUT
        self.loads = self.build.queue("qSyncIn0", Engine.SYNC, kind)
        kind = QueueKind.HARDWARE_DYNAMIC if dynamic else QueueKind.OUTPUT
        self.stores = self.build.queue("qScalarOut0", Engine.SCALAR, kind)
        self._sbuf_used = 0
        self._psum_used = 0

    # Memory

    @property
    def sbuf_free(self) -> int:
        """Bytes of SBUF per partition that no slot has."""
        return self.core.sbuf_bytes_per_partition - self._sbuf_used

    def sbuf(self, count: int, elements: int, dtype: DType | None = None) -> list[Slot]:
        """Slots of SBUF of `elements` per partition each."""
        size = elements * (dtype or self.dtype).byte_count
        first, self._sbuf_used = self._sbuf_used, self._sbuf_used + count * size
        return [Slot(self.build.tile(Memory.SBUF, first + i * size, size), elements) for i in range(count)]

    def psum(self, count: int, elements: int) -> list[Slot]:
        """Slots of PSUM, each starting a bank."""
        banks = -(-elements * 4 // BANK_BYTES)
        first, self._psum_used = self._psum_used, self._psum_used + count * banks
        return [
            Slot(self.build.tile(Memory.PSUM, (first + i * banks) * BANK_BYTES, elements * 4), elements)
            for i in range(count)
        ]

    # Data movement

    def load(
        self, slot: Slot, row_bytes: int, *, rows: int = 128, strided: bool = True, queue: int | None = None
    ) -> None:
        """Load a tile of `rows` rows of `row_bytes` from HBM."""
        slot.written = self.build.dma(
            self.loads if queue is None else queue, source_memory=Memory.HBM, destination_memory=Memory.SBUF,
            bytes=rows * row_bytes, descriptor_bytes=row_bytes, partitions=rows, tile=slot.tile,
            strided=strided, after=slot.readers,
        )  # fmt: skip
        slot.readers = ()

    def store(
        self, slot: Slot, row_bytes: int, *, rows: int = 128, strided: bool = True, cast: int = 0
    ) -> None:
        """Store a tile to HBM; `cast` as in the DMA table, `row_bytes` as HBM gets them."""
        stored = self.build.dma(
            self.stores, source_memory=Memory.SBUF, destination_memory=Memory.HBM, bytes=rows * row_bytes,
            descriptor_bytes=row_bytes, partitions=rows, tile=slot.tile, strided=strided,
            cast=cast, after=[slot.written],
        )  # fmt: skip
        slot.readers = (*slot.readers, stored)

    # Compute

    def matmul(self, stationary: Slot, moving: Slot, result: Slot, *, first: bool, elements: int) -> None:
        """One logical matmul: one LDWEIGHTS and MATMUL, or two of each (LOW and HIGH) in fp32."""
        after = (stationary.written, moving.written, *(result.readers if first else ()))
        single = self.dtype == DType.F32
        flags = Flag.FP32_HALF if single else Flag.NONE
        row = -1
        for _ in range(2 if single else 1):
            self.build.instruction(
                Engine.TENSOR, Opcode.LDWEIGHTS, partitions=128, columns=128, input_dtype=self.dtype,
                source_memory=Memory.SBUF, source=stationary.tile, flags=flags, after=after,
            )  # fmt: skip
            row = self.build.instruction(
                Engine.TENSOR, Opcode.MATMUL, partitions=128, columns=128, elements=elements,
                input_dtype=self.dtype, output_dtype=DType.F32, source_memory=Memory.SBUF,
                destination_memory=Memory.PSUM, source=moving.tile, destination=result.tile, flags=flags,
            )  # fmt: skip
        stationary.readers = moving.readers = (row,)
        if first:
            result.readers = ()
        result.written = row

    def compute(
        self,
        engine: Engine,
        opcode: Opcode,
        result: Slot,
        inputs: Iterable[Slot],
        *,
        elements: int,
        memory: Memory = Memory.SBUF,
        flags: Flag = Flag.NONE,
        partitions: int = 128,
        dtypes: tuple[DType, DType] | None = None,
    ) -> int:
        """One instruction that reads `inputs` and writes `result`."""
        sources = list(inputs)
        after = [slot.written for slot in (*sources, result)]
        after += result.readers
        input_dtype, output_dtype = dtypes or (self.dtype, self.dtype)
        row = self.build.instruction(
            engine, opcode, partitions=partitions, elements=elements, input_dtype=input_dtype,
            output_dtype=output_dtype, source_memory=memory, destination_memory=Memory.SBUF,
            source=sources[0].tile if sources else -1,
            second_source=sources[1].tile if len(sources) > 1 else -1,
            destination=result.tile, flags=flags, after=after,
        )  # fmt: skip
        for slot in sources:
            slot.readers = (*slot.readers[-3:], row)
        result.written, result.readers = row, ()
        return row

    def finish(self) -> Program:
        """The Program."""
        return self.build.finish()
