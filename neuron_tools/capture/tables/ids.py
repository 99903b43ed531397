"""How the ids of one execution are laid out: framework operations, HLO operations, instructions, DMAs.

Every execution owns one run of consecutive ids, so a reference to any row of it is a position in the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture.template import Template


@dataclass(frozen=True)
class IdLayout:
    """Positions of an executable's rows in the run of ids; -1 where a row is not written.

    Attributes:
        framework, hlo, instruction, dma: Position by row of the Program's table.
        count: Length of the run.
    """

    framework: Ints
    hlo: Ints
    instruction: Ints
    dma: Ints
    count: int


def id_layout(template: Template) -> IdLayout:
    """The layout for one executable."""
    program = template.program
    first_hlo = len(template.framework_rows)
    first_instruction = first_hlo + len(template.hlo_rows)
    first_dma = first_instruction + len(program.instructions)
    return IdLayout(
        framework=_positions(len(program.framework), template.framework_rows, 0),
        hlo=_positions(len(program.hlo), template.hlo_rows, first_hlo),
        instruction=first_instruction + np.arange(len(program.instructions), dtype=np.int64),
        dma=first_dma + np.arange(len(program.dmas), dtype=np.int64),
        count=first_dma + len(program.dmas),
    )


def _positions(rows: int, written: Ints, first: int) -> Ints:
    positions = np.full(rows, -1, np.int64)
    positions[written] = first + np.arange(len(written))
    return positions


def at(positions: Ints, rows: npt.NDArray[np.integer]) -> Ints:
    """Position of each referenced row; -1 for a missing reference (row < 0)."""
    if not len(positions):
        return np.full(len(rows), -1, np.int64)
    return np.where(rows >= 0, positions[np.maximum(rows, 0)], -1)
