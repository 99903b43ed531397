from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuron_tools.device.driver import processes
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.processes import (
    PublishedProcess,
    is_alive,
    parse_process,
    process_file,
    published_pids,
    read_process,
    start_ticks,
    write_process,
)


def test_a_file_is_replaced_as_a_whole_and_read_back(tmp_path: Path) -> None:
    (tmp_path / processes.FOLDER).mkdir()
    process = PublishedProcess(7, 9, {"tag": "t"}, {3: CoreCounts(busy_ns=5)}, {"tensors": Memory(1, 2, 3)})
    process.rest = {"timing": True, "reserved_cores": [3]}
    write_process(tmp_path, process)
    read = read_process(tmp_path, 7)
    assert read is not None
    assert (read.pid, read.start_ticks, read.cores, read.host_memory, read.rest) == (
        7,
        9,
        process.cores,
        process.host_memory,
        process.rest,
    )
    assert published_pids(tmp_path) == [7]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "start_ticks": 2, "cores": 3}'])
def test_what_is_cut_off_is_no_process(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"process|Expecting"):
        parse_process(text)
    (tmp_path / processes.FOLDER).mkdir()
    process_file(tmp_path, 1).write_text(text)
    assert read_process(tmp_path, 1) is None


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    started = start_ticks(os.getpid())
    assert started is not None
    assert is_alive(PublishedProcess(os.getpid(), started))
    assert not is_alive(PublishedProcess(os.getpid(), started + 1))
    assert start_ticks(2**22 + 1) is None


def test_without_a_folder_nobody_publishes(tmp_path: Path) -> None:
    assert published_pids(tmp_path / "gone") == []
