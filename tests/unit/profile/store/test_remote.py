"""Profiles behind URLs: what is looked at is fetched, and no more."""

import functools
import http.server
import threading

import fsspec
import numpy as np
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.reader import NotAProfileError, QueryError
from neuron_tools.profile.store import remote
from tests.unit.profile.timeline.traces import serial_spans, write_spans


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    start, duration = serial_spans(2, 200_000)
    folder = tmp_path_factory.mktemp("remote") / "run.nprof"
    write_spans(folder, start, duration, names=[f"s{n % 900}" for n in range(200_000)], chunks=4)
    fsspec.filesystem("memory").put(str(folder), "/lazy/run.nprof", recursive=True)
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(remote, "BLOCK_BYTES", 1 << 12)


URL = "memory://lazy/run.nprof"
QUERIES = (
    "SELECT count(*), min(start_ts), max(end_ts) FROM TraceSpan",
    "SELECT name, duration_ns FROM TraceSpan ORDER BY duration_ns DESC, id LIMIT 5",
)


def test_everything_reads_as_it_does_on_the_disk(directory):
    with open_profile(directory) as local, open_profile(URL) as far:
        assert far.tables() == local.tables()
        assert far.tracks() == local.tracks()
        for query in QUERIES:
            assert far.query(query).equals(local.query(query))
        start, end = local.time_range_ns()
        for low, high in ((start, end), (end // 3, end // 2), (end // 3, end // 3 + 5000)):
            assert far.timelines(None, low, high, 300).equals(local.timelines(None, low, high, 300))
        row = far.spans("p0/trace/0", end // 2, end // 2 + 9000).column("row")[0].as_py()
        assert far.row("TraceSpan", row) == local.row("TraceSpan", row)
        with far.slice(end // 3, end // 2) as part:
            assert 0 < part.query("SELECT count(*) FROM TraceSpan").column(0)[0].as_py() < 200_000
        assert far.search("s777").num_rows == local.search("s777").num_rows > 0


def test_no_more_is_fetched_than_is_looked_at(directory, small_blocks):
    stored = sum(path.stat().st_size for path in directory.rglob("*") if path.suffix in (".parquet", ".bin"))
    with open_profile(URL) as profile:
        folder = remote.remote_folder(profile.path)
        opened = folder.fetched_bytes
        profile.timelines(pixels=100)
        drawn = folder.fetched_bytes
        profile.timelines(pixels=100)
        assert folder.fetched_bytes == drawn
        profile.query("SELECT sum(duration_ns) FROM TraceSpan")
        queried = folder.fetched_bytes
    assert opened < drawn < stored / 4
    assert drawn < queried < stored / 2


def test_only_row_groups_that_a_condition_leaves_are_fetched(directory, small_blocks):
    with open_profile(URL) as profile:
        end = profile.time_range_ns()[1]
        folder = remote.remote_folder(profile.path)
        before = folder.fetched_bytes
        profile.query(f"SELECT max(duration_ns) FROM TraceSpan WHERE start_ts > {end - 1000}")
        of_the_end = folder.fetched_bytes - before
        profile.query("SELECT max(duration_ns), min(start_ts) FROM TraceSpan")
        of_all = folder.fetched_bytes - before
    assert 0 < of_the_end < of_all / 2


def test_queries_stay_within_the_profile(directory):
    with open_profile(URL) as profile:
        for place in ("/etc/passwd", f"{directory}/TraceSpan/*.parquet", "memory://lazy/other.parquet"):
            with pytest.raises(QueryError):
                profile.query(f"SELECT * FROM read_parquet('{place}')")


def test_a_profile_without_an_index_gets_one(directory, tmp_path):
    memory = fsspec.filesystem("memory")
    memory.put(str(directory), "/bare/run.nprof", recursive=True)
    memory.rm("/bare/run.nprof/timeline", recursive=True)
    with open_profile(directory) as local, open_profile("memory://bare/run.nprof") as far:
        assert far.timelines(pixels=50).equals(local.timelines(pixels=50))


def test_the_folder_that_stands_for_it_goes_when_it_is_closed(directory):
    with open_profile(URL) as profile:
        place = profile.path
        assert place.is_dir()
    assert not place.exists()
    assert remote.remote_folder(place) is None


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves folders and files, ranges of files too, and counts the bytes."""

    sent = 0

    def log_message(self, *_):
        """Keep quiet."""

    def do_GET(self):
        path = self.translate_path(self.path)
        wanted = self.headers.get("Range")
        if wanted is None or not wanted.startswith("bytes="):
            super().do_GET()
            return
        with open(path, "rb") as file:
            content = file.read()
        first, last = wanted[len("bytes=") :].split("-")
        part = content[int(first) : int(last) + 1 if last else None]
        type(self).sent += len(part)
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)


def test_a_web_server_sends_only_what_is_looked_at(directory):
    pytest.importorskip("aiohttp")
    handler = functools.partial(RangeHandler, directory=str(directory.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/run.nprof"
            with open_profile(url) as far, open_profile(directory) as local:
                assert far.timelines(pixels=100).equals(local.timelines(pixels=100))
                assert far.query(QUERIES[0]).equals(local.query(QUERIES[0]))
        finally:
            server.shutdown()
            thread.join()
    stored = sum(path.stat().st_size for path in directory.rglob("*.*") if path.is_file())
    assert 0 < RangeHandler.sent < stored / 2


def test_reads_of_a_remote_file_give_its_bytes(small_blocks, tmp_path):
    memory = fsspec.filesystem("memory")
    content = np.random.default_rng(0).bytes(50_000)
    memory.pipe("/bytes/part.parquet", content)
    file = remote.RemoteFile(memory, "/bytes/part.parquet", tmp_path / "part.parquet")
    with file.open() as stream:
        for at, length in ((49_990, 100), (0, 10), (4090, 20), (8000, 30_000), (60_000, 5)):
            stream.seek(at)
            assert stream.read(length) == content[at : at + length]
    assert file.fetched_bytes < 60_000
    file.fetch(0, len(content))
    assert (tmp_path / "part.parquet").read_bytes() == content


def test_what_is_not_there_is_one_sentence():
    with pytest.raises(NotAProfileError, match="nothing"):
        open_profile("memory://lazy/nothing.nprof")
