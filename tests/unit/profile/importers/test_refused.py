"""Files that are known and not read: one sentence says what each is and what to import in its place."""

from __future__ import annotations

import cProfile
import errno
import lzma
import struct
import tempfile

import pytest

from neuron_tools.profile.importers import TraceError, import_profile, import_traces
from neuron_tools.profile.writer import ProfileWriteError
from tests.unit.profile.importers.importing import written

FILES = {
    "profile.ntff": (b"\x01\x02\x03", r"is a raw trace of a Neuron device \(NTFF\).*view -n FILE.neff"),
    "model.neff": (b"\x02" + bytes(2_000), r"is a compiled model \(NEFF\), no trace of it"),
    "ntrace.pb": (b"\x0a\x03abc", r"is a part of a session of Neuron's runtime.*view -d FOLDER"),
    "report.nsys-rep": (b"\x00\x01", r"is a report of Nsight Systems: .*nsys export --type sqlite"),
    "report.ncu-rep": (b"NVR\x00", r"is a report of Nsight Compute"),
    "traces.otf2": (b"OTF2", r"is a part of an OTF2 archive: .*rocprofv3"),
    "cpu.prof": (struct.pack("<5Q", 0, 3, 0, 10_000, 0), r"gperftools in its older format: .*pprof -proto"),
    "cpu32.prof": (struct.pack("<5I", 0, 3, 0, 10_000, 0), r"gperftools in its older format"),
    "perf.data": (b"PERFILE2" + bytes(80), r"is a recording of perf: .*perf_to_profile"),
    "callgrind.out.1": (b"# callgrind format\nversion: 1\n", r"is a profile of Callgrind"),
    "stacks.txt": (b"main;load;read 12\nmain;step 3\n", r"is stacks folded to lines: record with `py-spy"),
    "memray.bin": (b"memray\x00\x0b", r"is a recording of Memray"),
    "TraceSpan.parquet": (b"PAR1" + bytes(20), r"is one Parquet table: name the folder"),
    "table.arrow": (b"ARROW1\0\0", r"is an Arrow file"),
    "trace.zip": (b"PK\x03\x04" + bytes(40), r"is a zip archive: unpack it"),
    "trace.json.xz": (lzma.compress(b"{}"), r"is packed with xz: unpack it"),
    "trace.json.zst": (b"\x28\xb5\x2f\xfd\x04", r"is packed with Zstandard"),
    "a.out": (b"\x7fELF\x02", r"is a program: import the trace of a run of it"),
    "index.html": (b"<!DOCTYPE html><html>", r"is a web page"),
    "config.json": (b'{"b": 1, "a": {"c": 2}}', r"is in no known format: .* first keys are a, b\.$"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_called_what_it_is(name, tmp_path):
    content, sentence = FILES[name]
    with pytest.raises(TraceError, match=sentence) as told:
        import_traces([written(tmp_path, name, content)], tmp_path / "out.nprof")
    assert "\n" not in str(told.value)


def test_a_profile_of_cprofile_is_known_by_its_content(tmp_path):
    with cProfile.Profile() as recorded:
        sorted(range(3))
    recorded.dump_stats(tmp_path / "stats")
    with pytest.raises(TraceError, match=r"is a profile of cProfile.*py-spy record"):
        import_traces([tmp_path / "stats"], tmp_path / "out.nprof")


def test_a_session_of_the_runtime_is_told_from_other_folders(tmp_path):
    (tmp_path / "session").mkdir()
    (tmp_path / "other").mkdir()
    written(tmp_path / "session", "profile_nc_0.ntff", b"\x01")
    with pytest.raises(TraceError, match=r"session is a session of Neuron's runtime.*view -d FOLDER"):
        import_traces([tmp_path / "session"], tmp_path / "out.nprof")
    with pytest.raises(TraceError, match=r"other is a folder without Parquet tables"):
        import_traces([tmp_path / "other"], tmp_path / "out.nprof")


def test_what_nobody_knows_is_told_what_is_read(tmp_path):
    with pytest.raises(TraceError, match=r"is in no known format\. Known are: .*rocpd"):
        import_traces([written(tmp_path, "noise", b"\x99\x98\x97")], tmp_path / "out.nprof")


@pytest.mark.parametrize("where", ["mkdtemp", "assemble"])
def test_a_place_that_cannot_be_written_is_named(where, tmp_path, monkeypatch):
    """Not the temporary folder beside it, and not what a library says of its files."""

    def refuse(*arguments, **named):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    module = tempfile if where == "mkdtemp" else import_profile
    monkeypatch.setattr(module, where, refuse)
    trace = written(tmp_path, "trace.json", [{"ph": "X", "name": "a", "ts": 0, "dur": 1, "pid": 1, "tid": 1}])
    with pytest.raises(
        ProfileWriteError, match=r"out.nprof cannot be written \(No space left on device\): free"
    ):
        import_traces([trace], tmp_path / "out.nprof")
    assert not list(tmp_path.glob(".out.nprof*"))
