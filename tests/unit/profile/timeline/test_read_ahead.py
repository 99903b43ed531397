"""What is not drawn yet is read into the system's cache, never into the process."""

from neuron_tools.profile.timeline import read_ahead
from neuron_tools.profile.timeline.read_ahead import ReadAhead


def asked(tmp_path, monkeypatch, *, size, memory, first=()):
    """Stretches of a file that the system was told to read."""
    path = tmp_path / "index.bin"
    path.write_bytes(bytes(size))
    told = []
    monkeypatch.setattr(read_ahead, "PAUSE_S", 0.0)
    monkeypatch.setattr(read_ahead, "available_bytes", lambda: memory)
    monkeypatch.setattr(
        read_ahead.os, "posix_fadvise", lambda _, begin, length, __: told.append((begin, length))
    )
    reading = ReadAhead(path, size, first)
    reading.begin()
    reading.begin()
    if reading._thread is not None:
        reading._thread.join()
    return told


def test_a_large_file_is_read_whole_and_once(tmp_path, monkeypatch):
    size = read_ahead.FEWEST_BYTES + 5
    told = asked(tmp_path, monkeypatch, size=size, memory=1 << 40)
    assert [begin for begin, _ in told] == list(range(0, size, read_ahead.STEP_BYTES))


def test_what_is_looked_at_first_is_read_first(tmp_path, monkeypatch):
    size = read_ahead.FEWEST_BYTES
    told = asked(tmp_path, monkeypatch, size=size, memory=1 << 40, first=[(4096, 5000), (64, 65)])
    assert told[:3] == [(4096, 904), (64, 1), (0, read_ahead.STEP_BYTES)]


def test_a_small_file_and_one_beyond_memory_are_left(tmp_path, monkeypatch):
    assert not asked(tmp_path, monkeypatch, size=4096, memory=1 << 40)
    assert not asked(tmp_path, monkeypatch, size=read_ahead.FEWEST_BYTES, memory=read_ahead.FEWEST_BYTES)


def test_available_memory_is_known_or_none():
    assert read_ahead.available_bytes() >= 0
