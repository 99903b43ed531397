"""Random MX data of nki-library's tests, one large element in each scaling block, without a loop in Python.

Its tests draw a place, a sign and a mantissa for every block of 8 x 4 elements, millions of them. Numbers and
their order are NumPy's own: a compiled loop reads them from the same stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.compiled import compiled

_GENERATORS = "test.integration.nkilib.utils.tensor_generators"
_FUNCTION = "generate_stabilized_mx_data"
_ROWS, _COLUMNS = 8, 4
_WORDS, _AT_ONCE = 6, 1 << 18
"""Words of the stream that a block takes or a little more, and blocks for which they are drawn at once."""
_SCALES, _BIAS = 10, 127
"""Exponents of scales below the largest that are drawn, and their bias in a byte."""

Doubles = npt.NDArray[np.float64]


def install() -> None:
    """Let the library's test modules, once they are imported, make such data by the compiled loop."""
    generators = sys.modules.get(_GENERATORS)
    original = getattr(generators, _FUNCTION, None)
    if generators is None or original is None:
        return
    made = stabilized(generators, original)
    for module in list(sys.modules.values()):
        if vars(module).get(_FUNCTION) is original:
            setattr(module, _FUNCTION, made)


def stabilized(library: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    """The library's function: floats, the MX data that equals them, and its scales.

    Args:
        library: Its module, with what it calls.
        original: The function, for what has no blocks.
    """

    def made(mx_dtype: Any, shape: tuple[int, int], val_range: float = 1.0) -> Any:
        if val_range == 0 or shape[0] % _ROWS or shape[1] % _COLUMNS:
            return original(mx_dtype, shape, val_range)
        largest = library.get_mx_fp_max(mx_dtype)
        data = np.random.random(shape)
        data *= 2
        data -= 1
        data *= largest
        raise_blocks(data, float(2 ** library.get_mx_max_exp(mx_dtype)))
        quantized = library.static_cast(
            data.astype(np.float32), library.NL_TO_DT_DTYPE.get(mx_dtype, mx_dtype)
        )
        del data
        upper = min(255, int(np.log2(val_range / largest) + _BIAS))
        blocks = shape[0] // _ROWS, shape[1] // _COLUMNS
        scales = np.random.randint(max(0, upper - _SCALES), upper + 1, size=blocks, dtype=np.uint8)
        return library.dequantize_mx_golden(quantized, scales), quantized, scales

    return made


def raise_blocks(data: Doubles, power: float) -> None:
    """Give one random element of each block the largest exponent: +-1.0 to 1.5 times `power`.

    Args:
        data: (8 m, 4 n), C-contiguous; changed.
        power: The power of two.
    """
    stream = np.random.get_bit_generator()  # type: ignore[attr-defined]  # NumPy documents it
    blocks, done = data.size // (_ROWS * _COLUMNS), 0
    while done < blocks:
        before = stream.state
        words = stream.random_raw(_WORDS * min(blocks - done, _AT_ONCE) + 2 * _WORDS)
        done, used = _raise(data, power, words, done)
        stream.state = before
        stream.random_raw(used, output=False)


@compiled
def _raise(data: Doubles, power: float, words: npt.NDArray[np.uint64], block: int) -> tuple[int, int]:
    """Go on at a block while the words last; returns the first block that is left, and the words used."""
    across = data.shape[1] // _COLUMNS
    blocks = data.shape[0] // _ROWS * across
    used = at = 0
    while block < blocks:
        row = column = np.uint64(0)
        while at < words.size:  # 0 to 6: words are drawn until their lowest bits fit
            row = words[at] & np.uint64(7)
            at += 1
            if row < 7:
                break
        while at < words.size:  # 0 to 2
            column = words[at] & np.uint64(3)
            at += 1
            if column < 3:
                break
        if at + 3 > words.size:
            break
        sign = 1.0 if words[at] & np.uint64(1) else -1.0
        high, low = words[at + 1] >> np.uint64(5), words[at + 2] >> np.uint64(6)
        mantissa = 1.0 + (float(high) * 67108864.0 + float(low)) / 9007199254740992.0 * 0.5
        at += 3
        down, right = block // across * _ROWS + int(row), block % across * _COLUMNS + int(column)
        data[down, right] = sign * mantissa * power
        block += 1
        used = at
    return block, used
