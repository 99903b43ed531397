"""Members of many JSON objects as columns: texts, exact times, numbers, and JSON passed on as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Bools, Bytes, Ints
from neuron_tools.profile.importers import json_decode, json_scan
from neuron_tools.profile.importers.json_text import loads

TEXTS = pa.dictionary(pa.int32(), pa.string())
Places = npt.NDArray[np.int32]
QUOTE = ord('"')


class KeySet:
    """The wanted keys of objects, as the compiled scan takes them."""

    def __init__(self, keys: Sequence[str]) -> None:
        encoded = [key.encode() for key in keys]
        self.numbers: Mapping[str, int] = {key: number for number, key in enumerate(keys)}
        self.text: Bytes = np.frombuffer(b"".join(encoded), np.uint8)
        self.offsets: Ints = np.cumsum([0, *map(len, encoded)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.numbers)


class JsonRows:
    """Objects whose wanted members have been found.

    Args:
        data: uint8, the text.
        keys: Which members.
        starts, stops: int32, shape (rows, keys + 1): where each value stands, and last the whole object; -1 =
            absent.
    """

    def __init__(self, data: Bytes, keys: KeySet, starts: Places, stops: Places) -> None:
        self._data = data
        self._keys = keys
        self._starts = starts
        self._stops = stops
        self._known: dict[str, pa.DictionaryArray] = {}
        self._prepared: dict[str, pa.StringArray] = {}
        self._places: npt.NDArray[np.intp] | None = None  # of these rows in what is prepared; None = all

    def __len__(self) -> int:
        return len(self._starts)

    def take(self, rows: npt.NDArray[np.intp] | Bools) -> JsonRows:
        """The chosen rows."""
        taken = JsonRows(self._data, self._keys, self._starts[rows], self._stops[rows])
        if self._prepared:
            taken._prepared = self._prepared
            taken._places = np.arange(len(self))[rows] if self._places is None else self._places[rows]
        return taken

    def prepare_json(self, key: str) -> JsonRows:
        """Does now what `json` of these rows, and of those that are taken from them, would do later."""
        self._prepared[key] = self.json(key)
        return self

    def whole(self) -> Iterator[bytes]:
        """The objects' own text."""
        for first, last in zip(self._starts[:, -1].tolist(), self._stops[:, -1].tolist()):
            yield self._data[first:last].tobytes()

    def has(self, key: str) -> Bools:
        """Which rows have the member, whatever its value."""
        present: Bools = self._starts[:, self._keys.numbers[key]] >= 0
        return present

    def places(self, key: str) -> tuple[Ints, Ints]:
        """Where the values of a member begin and end."""
        number = self._keys.numbers[key]
        return self._starts[:, number].astype(np.int64), self._stops[:, number].astype(np.int64)

    def scaled(self, key: str, scale: int, limit: int = json_decode.LARGEST_TIME) -> tuple[Ints, Bools]:
        """A number times 10 ** scale, exactly, and whether there is one; 0 where there is none.

        Microseconds with a decimal point become nanoseconds with scale 3, without the rounding of floats.
        """
        starts, stops = self.places(key)
        values = np.zeros(len(starts), np.int64)
        valid = np.zeros(len(starts), np.bool_)
        json_decode.scaled_decimals(self._data, starts, stops, scale, limit, values, valid)
        return values, valid

    def integers(self, key: str) -> pa.Array:
        """Whole numbers (also those written as texts), null where there is none."""
        values, valid = self.scaled(key, 0, json_decode.LARGEST_INTEGER)
        return pa.array(values, mask=~valid)

    def numbers(self, key: str) -> pa.Array:
        """float64, null where the value is no number."""
        starts, stops = self.places(key)
        return decoded_numbers(self._data, starts, stops)

    def booleans(self, key: str) -> pa.Array:
        """Truth values, also those written as texts; null where there is none."""
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        return mapped(self.texts(key), lambda text: words.get(text.lower()), pa.bool_())

    def texts(self, key: str) -> pa.DictionaryArray:
        """Texts as a dictionary; numbers and other values as they are spelled; null where absent."""
        if key not in self._known:
            self._known[key] = decoded_texts(self._data, *self.places(key))
        return self._known[key]

    def spelled(self, key: str) -> pa.DictionaryArray:
        """Values as they stand in the file, so that 7 and "7" differ."""
        starts, stops = self.places(key)
        return raw_texts(self._data, starts, stops, starts >= 0).dictionary_encode()

    def json(self, key: str) -> pa.StringArray:
        """Values as compact valid JSON text; null where absent or nested too deeply."""
        if key in self._prepared:
            prepared = self._prepared[key]
            return prepared if self._places is None else prepared.take(pa.array(self._places))
        starts, stops = self.places(key)
        return valid_json(self._data, starts, stops)

    def objects(self, key: str, keys: KeySet) -> JsonRows:
        """The members of an object that is itself a member; rows in which it is none have no members."""
        firsts, lasts = self.places(key)
        starts, stops = (np.full((len(firsts), len(keys) + 1), -1, np.int32) for _ in range(2))
        json_scan.scan_slices(self._data, firsts, lasts, keys.text, keys.offsets, starts, stops)
        return JsonRows(self._data, keys, starts, stops)

    def members(self, key: str) -> Members:
        """All members of an object that is itself a member."""
        return listed_members(self._data, *self.places(key))

    def hashes(self, key: str) -> npt.NDArray[np.uint64]:
        """A hash of each value's text, with which 7 and "7" are one; 0 where absent."""
        starts, stops = self.places(key)
        found = np.zeros(len(starts), np.uint64)
        json_decode.text_hashes(self._data, starts, stops, found)
        return found

    def first_bytes(self, key: str) -> npt.NDArray[np.uint8]:
        """The first character of each text; 0 where it is none."""
        number = self._keys.numbers[key]
        found = np.zeros(len(self), np.uint8)
        json_decode.first_letters(self._data, self._starts[:, number], self._stops[:, number], found)
        return found


class Members:
    """All members of some objects, one after the other.

    Attributes:
        row: int64, shape (members,): the object that each belongs to.
    """

    def __init__(self, data: Bytes, found: Ints) -> None:
        self._data = data
        self._found = found
        self.row = found[:, 0]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Ints) -> Members:
        """The chosen members."""
        return Members(self._data, self._found[chosen])

    def widths(self) -> Ints:
        """Bytes of each value's text."""
        widths: Ints = self._found[:, 4] - self._found[:, 3]
        return widths

    def texts(self) -> pa.Array:
        """Values that are JSON strings, decoded; null where one is not."""
        starts, stops = self._found[:, 3], self._found[:, 4]
        quoted = self._data[starts] == QUOTE if len(starts) else np.zeros(0, np.bool_)
        return _decoded(self._data, starts + 1, stops - 1, quoted)

    def integers(self) -> tuple[Ints, Bools]:
        """Values that are whole numbers of 64 bits, and which are."""
        starts, stops = (np.ascontiguousarray(self._found[:, column]) for column in (3, 4))
        values, valid = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.bool_)
        json_decode.whole_numbers(self._data, starts, stops, values, valid)
        return values, valid

    def is_word(self, word: str) -> Bools:
        """Which values are a bare word."""
        spelled = self.spelled(self.widths() == len(word))
        same: Bools = pc.fill_null(pc.equal(spelled, word), False).to_numpy(zero_copy_only=False)
        return same

    def spelled(self, chosen: Bools) -> pa.StringArray:
        """Values as they stand in the text; empty where not chosen."""
        starts, stops = self._found[:, 3], self._found[:, 4]
        stops = np.where(chosen, stops, starts)
        return raw_texts(self._data, starts, stops, np.ones(len(starts), np.bool_))

    def keys(self) -> pa.DictionaryArray:
        """Names of the members."""
        return _decoded(self._data, self._found[:, 1], self._found[:, 2], self._found[:, 1] >= 0)

    def numbers(self) -> pa.Array:
        """Values, float64; null where one is no number."""
        return decoded_numbers(self._data, self._found[:, 3], self._found[:, 4])


def members_of_texts(texts: pa.Array) -> Members:
    """All members of JSON objects, one an entry; other texts and null have none."""
    column = texts.cast(pa.string())
    _, offsets, content = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(
        np.int64
    )
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    known = np.diff(places) > 0
    if column.null_count:
        known &= column.is_valid().to_numpy(zero_copy_only=False)
    return listed_members(data, np.where(known, places[:-1], -1), places[1:].copy())


def listed_members(data: Bytes, firsts: Ints, lasts: Ints) -> Members:
    """All members of the objects data[firsts[i]:lasts[i]]; -1 = no object."""
    room = max(1024, 4 * len(firsts))
    while True:
        found = np.empty((room, 5), np.int64)
        count = json_scan.list_members(data, firsts, lasts, found)
        if count <= room:
            return Members(data, found[:count])
        room = count


def plain_value(text: bytes) -> Any:
    """The Python value of JSON text; None where it breaks the grammar or is nested too deeply."""
    data = np.frombuffer(text, np.uint8)
    out = np.empty(4 * len(data) + 16, np.uint8)
    offsets, valid = np.zeros(2, np.int32), np.zeros(1, np.bool_)
    json_decode.copy_valid(data, np.array([0]), np.array([len(data)]), offsets, out, valid)
    return loads(out[: offsets[1]].tobytes()) if valid[0] else None


def raw_texts(data: Bytes, starts: Ints, stops: Ints, valid: Bools) -> pa.StringArray:
    """data[starts[i]:stops[i]] as texts; null where not valid."""
    starts, stops = np.where(valid, starts, 0), np.where(valid, stops, 0)
    offsets = np.zeros(len(starts) + 1, np.int32)
    out = np.empty(int((stops - starts).sum()), np.uint8)
    json_decode.copy_slices(data, starts, stops, offsets, out)
    return string_array(offsets, out, valid)


def decoded_texts(data: Bytes, starts: Ints, stops: Ints) -> pa.DictionaryArray:
    """JSON strings decoded, other values as they are spelled; null where absent."""
    present = starts >= 0
    if not len(data):
        return pa.nulls(len(starts), TEXTS)
    quoted = present & (data[np.where(present, starts, 0)] == QUOTE)
    return _decoded(data, starts + quoted, stops - quoted, present)


def decoded_numbers(data: Bytes, starts: Ints, stops: Ints) -> pa.Array:
    """float64, correctly rounded; null where a value is no number."""
    starts, stops = np.ascontiguousarray(starts), np.ascontiguousarray(stops)
    valid = np.zeros(len(starts), np.bool_)
    json_decode.numbers_only(data, starts, stops, valid)
    return raw_texts(data, starts, stops, valid).cast(pa.float64())


def _decoded(data: Bytes, starts: Ints, stops: Ints, valid: Bools) -> pa.DictionaryArray:
    column = raw_texts(data, np.ascontiguousarray(starts), np.ascontiguousarray(stops), valid)
    return mapped(column.dictionary_encode(), _unescaped, pa.string())


def mapped(column: pa.DictionaryArray, function: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """A function of each different text; a dictionary array again where the results are texts."""
    texts = column.dictionary.to_pylist()
    if kind == pa.string():
        if not any("\\" in text for text in texts):
            return column
        values = pa.array([function(text) for text in texts], kind)
        return values.take(column.indices).dictionary_encode()
    values = pa.array([function(text) for text in texts], kind)
    return values.take(column.indices)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(loads(f'"{text}"'))
    except ValueError:
        return text


def valid_json(data: Bytes, starts: Ints, stops: Ints) -> pa.StringArray:
    """Values that stand at some places as compact valid JSON text; null where there is none."""
    offsets = np.zeros(len(starts) + 1, np.int32)
    out = np.empty(4 * int((stops - starts).sum()) + 16, np.uint8)
    valid = np.zeros(len(starts), np.bool_)
    json_decode.copy_valid(data, starts, stops, offsets, out, valid)
    return string_array(offsets, out[: offsets[-1]].copy(), valid)


def string_array(offsets: npt.NDArray[np.int32], data: Bytes, valid: Bools) -> pa.StringArray:
    """Texts from their places in UTF-8 bytes; null where not valid."""
    if valid.all():
        return pa.StringArray.from_buffers(len(valid), pa.py_buffer(offsets), pa.py_buffer(data))
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(valid), pa.py_buffer(offsets), pa.py_buffer(data), bits)
