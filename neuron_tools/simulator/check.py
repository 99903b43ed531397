"""Checks that a Program could run on a core: references, semaphores, tiles, memory limits, deadlock.

Every breach is a ProgramError of one sentence that names the instruction and its source line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Engine, Memory, Opcode, Program
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.references import check_references, describe, refuse
from neuron_tools.simulator.simulation import simulate

_MATMULS = (Opcode.MATMUL, Opcode.TRANSPOSE)


def check(program: Program, core: NeuronCore) -> None:
    """Refuse a Program that no core of this kind could run. Times nothing but finds deadlocks.

    Raises:
        ProgramError: See the module's text.
    """
    check_references(program)
    check_tiles(program, core)
    check_shapes(program, core)
    check_hbm(program, core)
    simulate(program, core)


def check_tiles(program: Program, core: NeuronCore) -> None:
    """Refuse tiles outside their memory or starting at a partition where no access may start.

    Source of the start rule: aws-neuron-sdk nki/guides/architecture (over 64 partitions start at 0, 33-64
    at 0 or 64, up to 32 at a multiple of 32).

    Raises:
        ProgramError: The first illegal tile.
    """
    tiles = program.tiles
    start, count = tiles["start_partition"].astype(np.int64), tiles["partitions"].astype(np.int64)
    size = np.select(
        [tiles["memory"] == Memory.SBUF, tiles["memory"] == Memory.PSUM],
        [core.sbuf_bytes_per_partition, core.psum_bytes_per_partition],
        np.iinfo(np.int32).max,
    )
    end = tiles["address"].astype(np.int64) + tiles["bytes_per_partition"]
    step = np.select([count > 64, count > 32], [128, 64], 32)
    on_chip = (tiles["memory"] == Memory.SBUF) | (tiles["memory"] == Memory.PSUM)
    _refuse_tile(
        program,
        on_chip & ((count < 1) | (start + count > core.sbuf_partitions)),
        f"reaches outside the {core.sbuf_partitions} partitions",
    )
    _refuse_tile(program, on_chip & (start % step != 0), "starts at a partition where none may start")
    _refuse_tile(program, (tiles["address"] < 0) | (tiles["bytes_per_partition"] < 0), "has a negative size")
    _refuse_tile(
        program,
        on_chip & (end > size),
        f"does not fit: a partition has {core.sbuf_bytes_per_partition} bytes of SBUF and "
        f"{core.psum_bytes_per_partition} of PSUM",
    )


def check_shapes(program: Program, core: NeuronCore) -> None:
    """Refuse instructions with more partitions, columns or elements than their engine takes.

    Raises:
        ProgramError: The first illegal shape.
    """
    instructions = program.instructions
    opcode, elements = instructions["opcode"], instructions["elements"]
    matmul = np.isin(opcode, _MATMULS) & (instructions["engine"] == Engine.TENSOR)
    stationary = matmul | (opcode == Opcode.LDWEIGHTS)
    refuse(
        program,
        instructions["partitions"] > core.sbuf_partitions,
        f"uses more than {core.sbuf_partitions} partitions",
    )
    refuse(
        program,
        stationary & (instructions["columns"] > core.tensor_columns),
        f"has more than {core.tensor_columns} stationary columns",
    )
    refuse(
        program,
        matmul & (elements > core.matmul_moving_columns),
        f"streams more than {core.matmul_moving_columns} moving columns",
    )
    refuse(program, elements < 0, "has a negative number of elements")


def check_hbm(program: Program, core: NeuronCore) -> None:
    """Refuse tensors that together need more HBM than the core has.

    Raises:
        ProgramError: Names the largest tensor.
    """
    needed = sum(tensor.byte_count for tensor in program.tensors)
    if needed > core.hbm_bytes:
        row = max(range(len(program.tensors)), key=lambda index: program.tensors[index].byte_count)
        largest = program.tensors[row]
        users = np.flatnonzero(_starts(program, program.dmas["tensor"] == row))
        user = f", moved by {describe(program, int(users[0]))}" if len(users) else ""
        raise ProgramError(
            f"Program {program.name!r} needs {needed} bytes of HBM for its tensors, but the core has "
            f"{core.hbm_bytes}; the largest is {largest.name!r} with {largest.byte_count} bytes{user}."
        )


def _refuse_tile(program: Program, broken: Bools, fault: str) -> None:
    if not broken.any():
        return
    row = int(np.argmax(broken))
    tile = program.tiles[row]
    users = _users(program, row)
    user = f", used by {describe(program, int(users[0]))}," if len(users) else ""
    raise ProgramError(
        f"Program {program.name!r}: tile {row} ({Memory(int(tile['memory'])).name}, partitions "
        f"{tile['start_partition']}+{tile['partitions']}, bytes {tile['address']}+"
        f"{tile['bytes_per_partition']}){user} {fault}."
    )


def _users(program: Program, tile: int) -> npt.NDArray[np.int64]:
    """Rows of the instructions that read or write a tile, or start a DMA that does."""
    instructions = program.instructions
    used = (instructions["source"] == tile) | (instructions["second_source"] == tile)
    used |= instructions["destination"] == tile
    return np.flatnonzero(used | _starts(program, program.dmas["tile"] == tile))


def _starts(program: Program, dmas: Bools) -> Bools:
    """Whether each instruction starts one of the marked DMAs."""
    dma = program.instructions["dma"]
    return np.asarray((dma >= 0) & np.append(dmas, False)[dma])
