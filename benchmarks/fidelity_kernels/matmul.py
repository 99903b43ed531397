"""The ladder of tiled matrix multiplications of the NKI tutorial, and the two-core GEMM built from its top.

Loop structure: aws-neuron/nki-samples tutorials/matrix_multiplication; the two-core GEMM:
SemiAnalysisAI/InferenceX experimental/operatorx, which gives each core half of the column blocks. What the
sources leave open is decided as the hardware forces it: tiles get as many buffers as fit in SBUF, tiles that
do not fit are loaded again for every use, and left tiles that only the loop over columns repeats stay if they
fit.
"""

from __future__ import annotations

from benchmarks.fidelity_kernels.kernel import Kernel, Ring, Slot
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode, Program

TILE, WIDE = 128, 512
BANKS = 8


def tiled(target: str, dtype: DType, m: int, n: int, k: int) -> Program:
    """Both operands loaded for every matmul."""
    kernel = Kernel("matmul_tiled", target, dtype)
    size = dtype.byte_count
    left, right = Ring(kernel.sbuf(8, TILE)), Ring(kernel.sbuf(8, WIDE))
    results, outputs = Ring(kernel.psum(4, WIDE)), Ring(kernel.sbuf(4, WIDE))
    for _ in range(m // TILE * (n // WIDE)):
        result = results.take()
        for depth in range(k // TILE):
            stationary, moving = left.take(), right.take()
            kernel.load(stationary, TILE * size)
            kernel.load(moving, WIDE * size)
            kernel.matmul(stationary, moving, result, first=depth == 0, elements=WIDE)
        _copy_out(kernel, result, outputs.take(), WIDE * size)
    return kernel.finish()


def hoist_load(target: str, dtype: DType, m: int, n: int, k: int) -> Program:
    """A row of left tiles loaded once, a column of right tiles once for each row of results."""
    kernel = Kernel("matmul_hoist_load", target, dtype)
    depths, size = k // TILE, dtype.byte_count
    outputs, results = Ring(kernel.sbuf(4, WIDE)), Ring(kernel.psum(4, WIDE))
    left = Ring(kernel.sbuf(depths, TILE))
    right = Ring(kernel.sbuf(_copies(kernel, depths, WIDE) * depths, WIDE))
    for _ in range(m // TILE):
        stationary = _load_all(kernel, left, depths, TILE * size)
        for _ in range(n // WIDE):
            moving = _load_all(kernel, right, depths, WIDE * size)
            _accumulate(kernel, stationary, moving, results.take(), outputs.take())
    return kernel.finish()


def block_free(target: str, dtype: DType, m: int, n: int, k: int) -> Program:
    """Blocks of 2 x 2 result tiles share their operands."""
    kernel = Kernel("matmul_block_free", target, dtype)
    depths, size = k // TILE, dtype.byte_count
    outputs, results = Ring(kernel.sbuf(4, WIDE)), Ring(kernel.psum(4, WIDE))
    left = Ring(kernel.sbuf(2 * depths, TILE))
    shared = kernel.sbuf_free >= 2 * depths * WIDE * size
    right = Ring(
        kernel.sbuf(_copies(kernel, depths * (2 if shared else 1), WIDE) * depths * (1 + shared), WIDE)
    )
    for _ in range(m // TILE // 2):
        rows = [_load_all(kernel, left, depths, TILE * size) for _ in range(2)]
        for _ in range(n // WIDE // 2):
            columns = [_load_all(kernel, right, depths, WIDE * size) for _ in range(2)] if shared else []
            for row in rows:
                for column in range(2):
                    moving = columns[column] if shared else _load_all(kernel, right, depths, WIDE * size)
                    _accumulate(kernel, row, moving, results.take(), outputs.take())
    return kernel.finish()


def block_all(target: str, dtype: DType, m: int, n: int, k: int, cores: int = 1) -> Program:
    """All three dimensions in blocks of 2048 x 1024 x 1024; partial sums gather in SBUF.

    Args:
        cores: Cores that share the column blocks; the Program is that of one of them.
    """
    kernel = Kernel("matmul_block_all", target, dtype)
    depth_tiles, row_tiles, column_tiles = 8, 16, 2
    row_blocks, size = m // (TILE * row_tiles), dtype.byte_count
    banks = Ring(kernel.psum(BANKS, WIDE))
    packed = Ring(kernel.sbuf(2, WIDE * column_tiles, DType.F32))
    partial = [kernel.sbuf(row_tiles * column_tiles, WIDE) for _ in range(row_blocks)]
    wide, tall = WIDE * column_tiles, TILE * row_tiles
    pair = depth_tiles * (wide + tall) * size
    copies = max(1, min(2, kernel.sbuf_free // pair))
    depth_blocks = k // (TILE * depth_tiles)
    right = Ring(kernel.sbuf(copies * depth_tiles, wide))
    stays = row_blocks == 1 and kernel.sbuf_free >= depth_blocks * depth_tiles * tall * size
    left = Ring(kernel.sbuf((depth_blocks if stays else copies) * depth_tiles, tall))
    kept: list[list[Slot]] = []
    for _ in range(n // wide // cores):
        for tile in (tile for block in partial for tile in block):
            kernel.compute(Engine.VECTOR, Opcode.MEMSET, tile, [], elements=WIDE)
        for depth in range(depth_blocks):
            moving = _load_all(kernel, right, depth_tiles, wide * size)
            for block in partial:
                if len(kept) <= depth or not stays:
                    kept.append(_load_all(kernel, left, depth_tiles, tall * size))
                stationary = kept[depth] if stays else kept[-1]
                _multiply_block(kernel, stationary, moving, block, banks, column_tiles)
        _store_block(kernel, partial, packed, column_tiles, wide * size)
    return kernel.finish()


def coalesced(target: str, dtype: DType, m: int, n: int, k: int, accumulators: int) -> Program:
    """Left tiles of several rows loaded at once, as many accumulators in PSUM (pantheonneuron)."""
    kernel = Kernel("gemm_coalesced", target, dtype)
    depths, size, tall = k // TILE, dtype.byte_count, TILE * accumulators
    outputs = Ring(kernel.sbuf(2 * accumulators, WIDE, DType.F32))
    results = kernel.psum(accumulators, WIDE)
    left = Ring(kernel.sbuf(depths, tall))
    right = Ring(kernel.sbuf(16, WIDE))
    for _ in range(m // tall):
        stationary = _load_all(kernel, left, depths, tall * size)
        for _ in range(n // WIDE):
            for depth in range(depths):
                moving = right.take()
                kernel.load(moving, WIDE * size)
                for result in results:
                    kernel.matmul(stationary[depth], moving, result, first=depth == 0, elements=WIDE)
            for result in results:
                _copy_out(kernel, result, outputs.take(), WIDE * 4)
    return kernel.finish()


def _copies(kernel: Kernel, tiles: int, elements: int) -> int:
    """How often a group of tiles fits in what is free of SBUF: 1 or 2."""
    size = tiles * elements * kernel.dtype.byte_count
    return max(1, min(2, kernel.sbuf_free // size))


def _load_all(kernel: Kernel, ring: Ring, count: int, row_bytes: int) -> list[Slot]:
    slots = [ring.take() for _ in range(count)]
    for slot in slots:
        kernel.load(slot, row_bytes)
    return slots


def _accumulate(
    kernel: Kernel, stationary: list[Slot], moving: list[Slot], result: Slot, output: Slot
) -> None:
    for depth, (row, column) in enumerate(zip(stationary, moving, strict=True)):
        kernel.matmul(row, column, result, first=depth == 0, elements=WIDE)
    _copy_out(kernel, result, output, WIDE * kernel.dtype.byte_count)


def _copy_out(kernel: Kernel, result: Slot, output: Slot, row_bytes: int) -> None:
    kernel.compute(
        Engine.VECTOR, Opcode.TENSOR_COPY, output, [result], elements=WIDE, memory=Memory.PSUM,
        dtypes=(DType.F32, kernel.dtype),
    )  # fmt: skip
    kernel.store(output, row_bytes)


def _multiply_block(
    kernel: Kernel, stationary: list[Slot], moving: list[Slot], block: list[Slot], banks: Ring, columns: int
) -> None:
    for partial in sorted(range(len(block)), key=lambda tile: tile % columns):
        bank = banks.take()
        for depth, (row, column) in enumerate(zip(stationary, moving, strict=True)):
            kernel.matmul(row, column, bank, first=depth == 0, elements=WIDE)
        kernel.compute(
            Engine.VECTOR, Opcode.TENSOR_TENSOR, block[partial], [block[partial], bank], elements=WIDE,
            flags=Flag.SECOND_OPERAND_PSUM, dtypes=(DType.F32, kernel.dtype),
        )  # fmt: skip


def _store_block(
    kernel: Kernel, partial: list[list[Slot]], packed: Ring, columns: int, row_bytes: int
) -> None:
    for block in partial:
        for first in range(0, len(block), columns):
            output = packed.take()
            for tile in block[first : first + columns]:
                kernel.compute(
                    Engine.SCALAR, Opcode.TENSOR_COPY, output, [tile], elements=WIDE,
                    dtypes=(kernel.dtype, DType.F32),
                )  # fmt: skip
            kernel.store(output, row_bytes, cast=4 // kernel.dtype.byte_count)
