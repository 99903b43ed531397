"""Pages of counters: what is written is read back, and what is half written is not."""

from __future__ import annotations

import os
import struct
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.nodes import DEVICE_MEMORY, ENGINES, STATUSES, TRAFFIC
from neuron_tools.device.driver.page import (
    HEADER,
    WORD_BYTES,
    Page,
    PageWriter,
    page_words,
    parse_page,
    read_page,
    read_whole,
)

numbers = st.integers(0, 2**63 - 1)
small = st.integers(0, 1000)
histograms = st.dictionaries(small, st.integers(1, 1000), max_size=5)
memories = st.builds(Memory, st.integers(1, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
cores = st.builds(
    CoreCounts,
    device=small,
    core=small,
    index=small,
    status=st.dictionaries(st.sampled_from(STATUSES), st.integers(1, 2**40)),
    inference_count=numbers,
    busy_ns=numbers,
    elapsed_ns=numbers,
    engine_busy_ns=st.fixed_dictionaries(dict.fromkeys(ENGINES, numbers)),
    traffic=st.fixed_dictionaries(dict.fromkeys(TRAFFIC, numbers)),
    device_memory=st.dictionaries(st.sampled_from(DEVICE_MEMORY), memories),
    latency=st.fixed_dictionaries({"device": histograms, "total": histograms}),
)
pages = st.builds(
    Page,
    revision=small,
    published_at_ns=numbers,
    elapsed_ns=numbers,
    is_timed=st.booleans(),
    application_memory=memories,
    cores=st.dictionaries(st.integers(0, 127), cores, max_size=3),
)


def as_bytes(page: Page) -> bytes:
    words = page_words(page)
    return struct.pack(f"<{len(words)}q", *words)


@given(page=pages)
def test_a_page_is_read_as_it_was_written(page: Page) -> None:
    assert parse_page(as_bytes(page)) == page


@given(page=pages, cut=st.integers(1, 80))
def test_a_page_that_was_cut_off_is_none(page: Page, cut: int) -> None:
    assert parse_page(as_bytes(page)[:-cut]) is None


@given(data=st.binary(max_size=400))
def test_other_bytes_are_no_page(data: bytes) -> None:
    assert parse_page(data) is None


def test_each_publication_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "7.counters"
    with closing(PageWriter(path)) as writer:
        assert read_page(path) is None
        writer.write(Page(revision=1, cores={3: CoreCounts(status={"success": 1})}))
        writer.write(Page(revision=2))
        assert read_page(path) == Page(revision=2)
    assert read_page(tmp_path / "gone") is None


def test_a_page_whose_writer_died_while_it_wrote_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "7.counters"
    with closing(PageWriter(path)) as writer:
        writer.write(Page(revision=1))
    with path.open("r+b") as file:
        file.seek(WORD_BYTES * HEADER.index("sequence"))
        file.write(struct.pack("<q", 3))
    assert read_page(path) is None


def test_a_publication_during_a_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "7.counters"
    pread, reads = os.pread, []
    with closing(PageWriter(path)) as writer:
        writer.write(Page(revision=1))

        def interrupted(descriptor: int, size: int, offset: int) -> bytes:
            data = pread(descriptor, size, offset)
            if not reads:
                writer.write(Page(revision=2))
            reads.append(offset)
            return data

        monkeypatch.setattr(os, "pread", interrupted)
        assert read_page(path) == Page(revision=2)
    assert len(reads) == 4


def test_a_page_that_grew_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "7.counters"
    page = Page(cores={core: CoreCounts() for core in range(64)})
    with closing(PageWriter(path)) as writer:
        writer.write(page)
    descriptor = os.open(path, os.O_RDONLY)
    data = read_whole(descriptor, 100)
    os.close(descriptor)
    assert data is not None
    read = parse_page(data)
    assert read is not None
    assert len(read.cores) == 64
