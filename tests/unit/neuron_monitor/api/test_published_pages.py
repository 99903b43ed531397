"""Processes whose counts stand in a page beside their JSON file."""

import os
import struct

import pytest

from neuron_monitor.api.published import PublishedProcesses
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.own_files import FILE_INTERVAL, OwnFiles
from neuron_tools.device.driver.page import page_path
from neuron_tools.device.driver.processes import PublishedProcess, start_ticks

FACTS = {"target": "trn2", "logical_core_size": 1, "timing": True, "profile": "/runs/a.nprof"}
SECOND_NS = 1_000_000_000


class Publishing:
    """One process that publishes when the test says so."""

    def __init__(self, root, pid):
        facts = {"tag": "pretrain", "command": "train.py", "runtime_version": "1", "rank": 3}
        self.process = PublishedProcess(pid, start_ticks(pid) or 0, facts)
        self.files = OwnFiles(root, self.process)
        self.page = page_path(root, pid)

    def publish(self, count=1, models=(), cores=(0, 1)):
        self.process.host_memory = {"application_memory": Memory(99, 70 + count, 99)}
        self.process.cores = {core: counted(core, count) for core in cores}
        self.files.write(FACTS, models, count * 10**9)


def counted(core, count):
    return CoreCounts(
        device=0,
        core=core,
        status={"success": 5 * count, "timeout": count},
        inference_count=6 * count,
        model_load_count=2,
        flop_count=10**12 * count,
        busy_ns=3_500_000 * count,
        elapsed_ns=10**9 * count,
        throttled_ns=7 * count,
        engine_busy_ns={"tensor": 11 * count, "vector": 12, "scalar": 13, "gpsimd": 14, "sync": 15},
        traffic=dict.fromkeys(
            (
                "hbm_read_bytes",
                "hbm_write_bytes",
                "dma_bytes",
                "host_to_device_bytes",
                "device_to_host_bytes",
            ),
            17 * count,
        ),
        device_memory={"tensors": Memory(900, 500, 700), "constants": Memory(30, 30, 30)},
        latency={"device": {1000 + core: count}, "total": {3000: count, 4000: 2}},
    )


def model(number, executions):
    return {"name": "step", "uuid": f"{number}", "core": 0, "is_running": True, "execution_count": executions}


@pytest.fixture
def publishing(simulated, pid):
    made = Publishing(simulated.root, pid)
    yield made
    made.files.close()


@pytest.fixture
def published(simulated):
    return PublishedProcesses(str(simulated.root / "processes"))


def test_a_page_tells_what_the_json_file_would(simulated, publishing, published):
    publishing.publish(4)
    (with_page,) = published.read(0)
    publishing.page.unlink()
    (without,) = PublishedProcesses(published.folder).read(0)
    assert with_page._replace(published_at_s=None, latency={}) == without._replace(
        published_at_s=None, latency={}
    )
    assert {kind: told.counts for kind, told in with_page.latency.items()} == {
        kind: told.counts for kind, told in without.latency.items()
    }
    assert {kind: told.bounds.ns for kind, told in with_page.latency.items()} == {
        "device": (1000, 1001),
        "total": (3000, 4000),
    }


def test_counts_move_while_the_json_file_stays(publishing, published):
    publishing.publish(1)
    publishing.files._publications_left = 5
    published.read(0)
    written = publishing.page.with_suffix(".json").stat().st_ino
    publishing.publish(2)
    (process,) = published.read(SECOND_NS)
    assert publishing.page.with_suffix(".json").stat().st_ino == written
    assert process.cores[1].count("flop_count") == 2 * 10**12
    assert (process.host_memory["application_memory"], process.elapsed_ns) == (72, 2 * 10**9)


def test_facts_that_changed_are_read_anew_and_now_and_then_the_rest_of_the_file(publishing, published):
    publishing.publish(1, [model(1, 5)])
    assert [told["uuid"] for told in published.read(0)[0].models_told] == ["1"]
    publishing.publish(2, [model(2, 1), model(1, 6)])
    assert [told["uuid"] for told in published.read(SECOND_NS)[0].models_told] == ["2", "1"]
    for count in range(3, 3 + FILE_INTERVAL):
        publishing.publish(count, [model(1, 100), model(2, 50)])
    assert published.read(2 * SECOND_NS)[0].models[0].execution_count == 100


def test_a_core_that_stands_still_is_the_same_object(publishing, published):
    publishing.publish(1)
    (before,) = published.read(0)
    publishing.process.cores = {0: counted(0, 1), 1: counted(1, 9)}
    publishing.files.write(FACTS, (), 10**9)
    (after,) = published.read(SECOND_NS)
    assert after.cores[0] is before.cores[0]
    assert after.cores[1] is not before.cores[1]


def test_a_page_that_is_being_written_keeps_what_was_read(publishing, published):
    publishing.publish(1)
    before = published.read(0)
    publishing.publish(2)
    with publishing.page.open("r+b") as page:
        page.seek(8)
        page.write(struct.pack("<q", 7))
    assert published.read(SECOND_NS) == before


@pytest.mark.parametrize("text", [b"", b"\x01" * 500, struct.pack("<13q", *[2] * 13)])
def test_a_page_of_another_form_leaves_the_json_file(publishing, published, text):
    publishing.publish(3)
    publishing.page.write_bytes(text)
    (process,) = published.read(0)
    assert process.cores[0].count("flop_count") == 3 * 10**12


def test_a_page_that_was_removed_and_made_anew_is_found(simulated, publishing, published, pid):
    publishing.publish(1)
    published.read(0)
    publishing.page.unlink()
    again = Publishing(simulated.root, pid)
    again.publish(8)
    published.read(2 * SECOND_NS)
    assert published.read(3 * SECOND_NS)[0].elapsed_ns == 8 * 10**9
    again.files.close()


def test_descriptors_of_processes_that_ended_are_given_back(simulated, publishing, published, pid):
    publishing.publish(1)
    published.read(0)
    (known,) = published._known.values()
    descriptor = known.page
    assert os.path.samestat(os.fstat(descriptor), publishing.page.stat())
    publishing.page.with_suffix(".json").unlink()
    left = publishing.page.rename(publishing.page.with_name("left"))
    assert published.read(SECOND_NS) == ()
    assert not _is_open(descriptor, left)


def _is_open(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


@pytest.mark.parametrize(("tells_more", "executions"), [(True, [20]), (False, [])], ids=["ended", "killed"])
def test_what_a_process_told_last_is_read_once_after_it_left(
    simulated, publishing, published, pid, tells_more, executions
):
    publishing.publish(count=1)
    published.read(0)
    if tells_more:
        publishing.publish(count=4, models=[model(1, 9)])
    for place in (publishing.page, simulated.root / "processes" / f"{pid}.json"):
        place.unlink()
    last = published.read(SECOND_NS)
    assert [process.cores[0].statuses["success"] for process in last] == executions
    assert published.read(2 * SECOND_NS) == ()
    assert published.faults == []
