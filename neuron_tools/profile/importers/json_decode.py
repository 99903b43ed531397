"""Compiled decoding of JSON values at known places: exact decimal numbers, and text copied or made valid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Bytes, Ints
from neuron_tools.compiled import compiled, compiled_part, copy_bytes
from neuron_tools.profile.importers.json_scan import ENDS_WORD

LARGEST_TIME = (1 << 62) - 1
"""Bound on times, so that the difference of two never overflows."""
LARGEST_INTEGER, LEAST_INTEGER = (1 << 63) - 1, -(1 << 63)
_LEAST = b"-9223372036854775808"
_SAFE_DIGITS = 17
"""So many digits never pass the smallest limit."""
DEEPEST = 60
"""Nesting beyond which arguments are dropped: their readers recurse."""

_QUOTE, _BACKSLASH, _MINUS, _PLUS, _POINT = 0x22, 0x5C, 0x2D, 0x2B, 0x2E
_ZERO, _NINE = 0x30, 0x39
_HEX_MARK = 0x75  # u
_COMMA, _COLON = 0x2C, 0x3A
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 0x5B, 0x5D, 0x7B, 0x7D

# What may follow while a value is copied: a value; the first element or key, or the end, of what was opened;
# the next after a comma (which is dropped before an end); a colon; a comma or the end; nothing.
_VALUE, _FIRST, _AFTER_COMMA, _COLON_NEXT, _SEPARATOR, _NOTHING = range(6)


@compiled
def _scaled(data: Bytes, position: int, end: int, scale: int, limit: int) -> tuple[bool, int]:
    """One decimal number times 10 ** scale, rounded half away from zero; False if none or too big."""
    negative = False
    if position < end and (data[position] == _MINUS or data[position] == _PLUS):
        negative = data[position] == _MINUS
        position += 1
    mantissa, digits, fraction, behind_point, round_up = 0, 0, 0, False, False
    while position < end:
        byte = data[position]
        if _ZERO <= byte <= _NINE:
            digits += 1
            if digits > _SAFE_DIGITS and (
                (behind_point and fraction >= 20) or mantissa > (limit - (byte - _ZERO)) // 10
            ):
                if not behind_point:
                    return False, 0
            else:
                mantissa = mantissa * 10 + (byte - _ZERO)
                if behind_point:
                    fraction += 1
        elif byte == _POINT and not behind_point:
            behind_point = True
        else:
            break
        position += 1
    if digits == 0:
        return False, 0
    exponent = 0
    if position < end and (data[position] == 0x65 or data[position] == 0x45):
        position += 1
        lower = position < end and data[position] == _MINUS
        if position < end and (data[position] == _MINUS or data[position] == _PLUS):
            position += 1
        if position >= end:
            return False, 0
        while position < end and _ZERO <= data[position] <= _NINE:
            exponent = min(exponent * 10 + (data[position] - _ZERO), 1000)
            position += 1
        exponent = -exponent if lower else exponent
    if position != end:
        return False, 0
    shift = scale - fraction + exponent
    while shift > 0 and mantissa:
        if mantissa > limit // 10:
            return False, 0
        mantissa *= 10
        shift -= 1
    while shift < 0 and (mantissa or round_up):
        round_up = mantissa % 10 >= 5
        mantissa //= 10
        shift += 1
    if round_up:
        mantissa += 1
    return True, -mantissa if negative else mantissa


@compiled
def scaled_decimals(
    data: Bytes,
    starts: Ints,
    stops: Ints,
    scale: int,
    limit: int,
    values: Ints,
    valid: Bools,
) -> None:
    """Numbers, or texts of numbers, times 10 ** scale, exactly.

    Args:
        starts, stops: int64, shape (rows,); -1 = absent.
        limit: The largest size of a result; what is larger is not valid.
        values: int64, shape (rows,): receives the results; 0 where `valid` becomes False.
        valid: bool, shape (rows,).
    """
    for row in range(len(starts)):
        first, last = starts[row], stops[row]
        if first >= 0 and last - first > 1 and data[first] == _QUOTE:
            first, last = first + 1, last - 1
        ok, value = (False, 0) if first < 0 else _scaled(data, first, last, scale, limit)
        valid[row] = ok
        values[row] = value


@compiled
def whole_numbers(data: Bytes, starts: Ints, stops: Ints, values: Ints, valid: Bools) -> None:
    """Numbers that are written as digits alone and fit 64 bits; `valid` tells which are."""
    for row in range(len(starts)):
        first, last = starts[row], stops[row]
        digits = first + 1 if first < last and data[first] == _MINUS else first
        ok = digits < last
        for position in range(digits, last):
            ok &= _ZERO <= data[position] <= _NINE
        value = np.int64(0)
        if ok:
            ok, value = _scaled(data, first, last, 0, LARGEST_INTEGER)
            if not ok and _is_least(data, first, last):
                ok, value = True, LEAST_INTEGER
        valid[row] = ok
        values[row] = value


@compiled_part
def _is_least(data: Bytes, first: int, last: int) -> bool:
    """Whether the text is the least integer of 64 bits, the only one whose size they do not hold."""
    if last - first != len(_LEAST):
        return False
    same = True
    for place in range(len(_LEAST)):
        same &= data[first + place] == _LEAST[place]
    return same


@compiled_part
def _behind_digits(data: Bytes, position: int, end: int) -> int:
    while position < end and _ZERO <= data[position] <= _NINE:
        position += 1
    return position


@compiled
def is_number(data: Bytes, position: int, end: int) -> bool:
    """Whether the text is a number as JSON spells it."""
    if position < end and data[position] == _MINUS:
        position += 1
    first = position
    position = _behind_digits(data, position, end)
    if position == first or (data[first] == _ZERO and position - first > 1):
        return False
    if position < end and data[position] == _POINT:
        position += 1
        first = position
        position = _behind_digits(data, position, end)
        if position == first:
            return False
    if position < end and (data[position] == 0x65 or data[position] == 0x45):
        position += 1
        if position < end and (data[position] == _MINUS or data[position] == _PLUS):
            position += 1
        first = position
        position = _behind_digits(data, position, end)
        if position == first:
            return False
    return position == end


@compiled
def numbers_only(data: Bytes, starts: Ints, stops: Ints, valid: Bools) -> None:
    """Tells which values are numbers as JSON spells them, of at most 300 characters."""
    for row in range(len(starts)):
        length = stops[row] - starts[row]
        valid[row] = starts[row] >= 0 and length <= 300 and is_number(data, starts[row], stops[row])


@compiled
def copy_slices(data: Bytes, starts: Ints, stops: Ints, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Puts data[starts[i]:stops[i]] one after the other; `offsets`, (rows + 1,), receives the places."""
    place = 0
    for row in range(len(starts)):
        offsets[row] = place
        length = stops[row] - starts[row]
        if length > 0:
            copy_bytes(out, place, data, starts[row], length)
            place += length
    offsets[len(starts)] = place


@compiled_part
def _is_word(data: Bytes, first: int, last: int) -> bool:
    """Whether a bare word is true, false or null."""
    for word in (b"true", b"false", b"null"):
        if last - first == len(word):
            same = True
            for step in range(len(word)):
                same &= data[first + step] == word[step]
            if same:
                return True
    return False


@compiled_part
def _is_hex(byte: int) -> bool:
    return _ZERO <= byte <= _NINE or 0x41 <= byte <= 0x46 or 0x61 <= byte <= 0x66


@compiled
def _unit(data: Bytes, position: int, end: int) -> int:
    """Value of the four hexadecimal digits behind a backslash and u at `position`; -1 if there are none."""
    if position + 6 > end or data[position] != _BACKSLASH or data[position + 1] != _HEX_MARK:
        return -1
    value = 0
    for digit in range(position + 2, position + 6):
        byte = data[digit]
        if not _is_hex(byte):
            return -1
        value = value * 16 + (byte - _ZERO if byte <= _NINE else (byte | 0x20) - 0x57)
    return value


@compiled_part
def _copy_string(data: Bytes, position: int, end: int, out: Bytes, place: int) -> int:
    """Copies the string data[position:end] with its quotes; what JSON forbids inside becomes allowed."""
    out[place] = _QUOTE
    place += 1
    position += 1
    last = end - 1
    while position < last:
        byte = data[position]
        if byte != _BACKSLASH:
            out[place] = byte if byte >= 0x20 else 0x20
            place += 1
            position += 1
            continue
        unit = _unit(data, position, last)
        width = 2
        if unit >= 0:
            width = 6
            if 0xD800 <= unit < 0xDC00 and 0xDC00 <= _unit(data, position + 6, last) < 0xE000:
                width = 12
            elif 0xD800 <= unit < 0xE000:  # half a pair
                out[place] = 0x3F
                place += 1
                position += 6
                continue
        elif position + 1 >= last or not _is_escape(data[position + 1]):
            out[place] = _BACKSLASH
            out[place + 1] = _BACKSLASH
            place += 2
            position += 1
            continue
        for _ in range(width):
            out[place] = data[position]
            place += 1
            position += 1
    out[place] = _QUOTE
    return place + 1


@compiled_part
def _is_escape(byte: int) -> bool:
    """Whether a byte may follow a backslash: a quote, a backslash, a slash, b, f, n, r or t."""
    return (
        byte in (_QUOTE, _BACKSLASH, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74)
    )  # fmt: skip


@compiled_part
def _string_end(data: Bytes, position: int, end: int) -> int:
    position += 1
    while position < end:
        if data[position] == _QUOTE:
            return position + 1
        position += 2 if data[position] == _BACKSLASH else 1
    return end


@compiled_part
def _copy_bare(data: Bytes, position: int, end: int, out: Bytes, place: int) -> tuple[int, int]:
    """Copies a number or word; NaN and other words become null. Returns both positions after it."""
    first = position
    while position < end and not ENDS_WORD[data[position]]:
        position += 1
    if is_number(data, first, position) or _is_word(data, first, position):
        for source in range(first, position):
            out[place] = data[source]
            place += 1
    else:
        for letter in b"null":
            out[place] = letter
            place += 1
    return position, place


@compiled_part
def _copy_valid(data: Bytes, position: int, end: int, out: Bytes, place: int) -> int:
    """Copies one value without white space; -1 where it breaks the grammar or is nested too deeply."""
    kinds, depth, expected = np.int64(0), 0, _VALUE
    while position < end:
        byte = data[position]
        if byte <= 0x20:
            position += 1
            continue
        is_closing = byte in (_CLOSE_OBJECT, _CLOSE_LIST)
        if is_closing:
            is_object = (kinds & 1) == 1
            fits = expected in (_SEPARATOR, _FIRST) or (expected == _AFTER_COMMA and out[place - 1] == _COMMA)
            if not depth or not fits or is_object != (byte == _CLOSE_OBJECT):
                return -1
            if expected == _AFTER_COMMA:
                place -= 1
            out[place] = byte
            place, position, depth, kinds = place + 1, position + 1, depth - 1, kinds >> 1
            expected = _SEPARATOR if depth else _NOTHING
        elif byte == _COMMA or byte == _COLON:  # noqa: SIM109 (compiled)
            if expected != (_SEPARATOR if byte == _COMMA else _COLON_NEXT):
                return -1
            out[place] = byte
            place, position = place + 1, position + 1
            expected = _AFTER_COMMA if byte == _COMMA else _VALUE
        elif expected in (_FIRST, _AFTER_COMMA) and (kinds & 1) == 1:
            if byte != _QUOTE:
                return -1
            stop = _string_end(data, position, end)
            place = _copy_string(data, position, stop, out, place)
            position, expected = stop, _COLON_NEXT
        elif expected not in (_VALUE, _FIRST, _AFTER_COMMA):
            return -1
        elif byte == _OPEN_OBJECT or byte == _OPEN_LIST:  # noqa: SIM109 (compiled)
            if depth == DEEPEST:
                return -1
            out[place] = byte
            place, position, depth = place + 1, position + 1, depth + 1
            kinds, expected = (kinds << 1) | (1 if byte == _OPEN_OBJECT else 0), _FIRST
        elif byte == _QUOTE:
            stop = _string_end(data, position, end)
            place = _copy_string(data, position, stop, out, place)
            position, expected = stop, _SEPARATOR if depth else _NOTHING
        else:
            position, place = _copy_bare(data, position, end, out, place)
            expected = _SEPARATOR if depth else _NOTHING
    return place if expected == _NOTHING else -1


@compiled
def copy_valid(
    data: Bytes,
    starts: Ints,
    stops: Ints,
    offsets: npt.NDArray[np.int32],
    out: Bytes,
    valid: Bools,
) -> None:
    """Copies values as compact JSON that every reader takes.

    White space goes, NaN and other bare words become null, control characters spaces, unknown escapes a
    backslash and a letter; a value that breaks the grammar or is nested too deeply is left out.

    Args:
        starts, stops: int64, shape (rows,); -1 = absent.
        offsets: int32, shape (rows + 1,): receives the places in `out`.
        out: uint8, four times as long as all values together.
        valid: bool, shape (rows,): receives which are there.
    """
    place = 0
    for row in range(len(starts)):
        offsets[row] = place
        valid[row] = False
        if starts[row] >= 0:
            after = _copy_valid(data, starts[row], stops[row], out, place)
            if after >= 0:
                valid[row] = True
                place = after
    offsets[len(starts)] = place


@compiled
def text_hashes(data: Bytes, starts: Ints, stops: Ints, hashes: npt.NDArray[np.uint64]) -> None:
    """FNV-1a hash of each value's text, without its quotes; 0 where absent.

    The constants are those of http://www.isthe.com/chongo/tech/comp/fnv/ for 64 bits.
    """
    for row in range(len(starts)):
        first, last = starts[row], stops[row]
        if first < 0:
            hashes[row] = 0
            continue
        if data[first] == _QUOTE:
            first, last = first + 1, last - 1
        value = np.uint64(0xCBF29CE484222325)
        for position in range(first, last):
            value = (value ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
        hashes[row] = value


@compiled
def first_letters(
    data: Bytes, starts: npt.NDArray[np.int32], stops: npt.NDArray[np.int32], letters: Bytes
) -> None:
    """The first byte of each text; values that are none, and empty ones, stay as they are."""
    for row in range(len(starts)):
        first = starts[row]
        if first >= 0 and stops[row] - first > 2 and data[first] == _QUOTE:
            letters[row] = data[first + 1]
