"""Files written by two threads: in order, and failing where the disk does."""

from __future__ import annotations

import io

import pytest

from neuron_tools.profile.export.writing_thread import WritingThread


class FullDisk(io.BytesIO):
    """Takes some bytes and no more."""

    def write(self, data: object) -> int:
        if self.tell() > 2000:
            raise OSError(28, "No space left on device")
        return super().write(bytes(data))  # type: ignore[call-overload]


def pieces(first: int):
    yield from (b"%d " % number for number in range(first, first + 50))


def write_all(stream: io.BytesIO):
    with WritingThread(stream) as thread:
        for first in range(0, 1000, 50):
            thread.write(lambda first=first: pieces(first))  # type: ignore[misc]


def test_pieces_are_written_in_order():
    stream = io.BytesIO()
    write_all(stream)
    assert [int(number) for number in stream.getvalue().split()] == list(range(1000))


def test_a_failing_write_is_raised():
    with pytest.raises(OSError, match="No space left"):
        write_all(FullDisk())


def test_a_failing_encoder_is_raised():
    def broken():
        yield b"fine"
        raise ValueError("cannot be encoded")

    with pytest.raises(ValueError, match="cannot be encoded"), WritingThread(io.BytesIO()) as thread:
        thread.write(broken)
