"""`neuronxcc.nki._private_kernels.cumsum`: running sums, which samplers of tokens take of probabilities.

AWS's kernel is closed; this one gives the same sums.
"""

from __future__ import annotations

from typing import Any

from neuron_tools.compat.neuronxcc.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiError

__all__ = ["cumsum"]
COLUMNS = 2048
"""Of one scan: its operands and its result lie in SBUF together."""


def cumsum(in_tensor: Any, out_tensor: Any, axis: int = 1) -> None:
    """Write the running sums of each row.

    Args:
        in_tensor: Of shape (rows, columns).
        out_tensor: Where they are written; of the same shape and dtype.
        axis: 1, or -1.

    Raises:
        NkiError: Another axis.
    """
    if axis not in (1, -1):
        raise NkiError(f"cumsum sums along axis 1, not {axis}: transpose the tensor first.")
    rows, columns = in_tensor.shape
    for row in range(0, rows, nl.tile_size.pmax):
        height = min(nl.tile_size.pmax, rows - row)
        before: Any = 0.0
        for column in range(0, columns, COLUMNS):
            width = min(COLUMNS, columns - column)
            part = (slice(row, row + height), slice(column, column + width))
            values = nl.load(in_tensor[part], dtype=nl.float32)
            ones = nl.ones((height, width), dtype=nl.float32, buffer=nl.sbuf)
            sums = nisa.tensor_tensor_scan(ones, values, initial=before, op0=nl.multiply, op1=nl.add)
            nl.store(out_tensor[part], sums)
            before = nl.copy(sums[0:height, width - 1 : width])
