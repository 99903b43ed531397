"""Packet times, engine spread, delays and issue costs of DMAs."""

import pytest

from neuron_tools import hardware
from neuron_tools.records.program import Engine, Memory, QueueKind
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.dma_costs import descriptor_ps, dma_costs, engines_used, trigger_costs
from neuron_tools.simulator.simulation import simulate


def transfer(
    rows,
    row_bytes,
    *,
    source=Memory.HBM,
    destination=Memory.SBUF,
    partitions=128,
    kind=QueueKind.HARDWARE_DYNAMIC,
    count=1,
    queues=1,
    transpose=False,
):
    build = ProgramBuilder("transfer")
    engine = Engine.GPSIMD if kind == QueueKind.SOFTWARE_DYNAMIC else Engine.SYNC
    names = [build.queue(f"q{index}", engine, kind) for index in range(queues)]
    for index in range(count):
        build.dma(
            names[index % queues], source_memory=source, destination_memory=destination,
            bytes=rows * row_bytes, descriptor_bytes=row_bytes, partitions=partitions, transpose=transpose,
        )  # fmt: skip
    return build.finish()


# Trn2 traces: median packet times on one engine.
@pytest.mark.parametrize(("packet_bytes", "nanoseconds"), [(256, 17), (512, 27), (2048, 83), (4096, 158)])
def test_packet_time_is_within_5_percent_of_the_traces(packet_bytes, nanoseconds):
    program = transfer(128, packet_bytes)
    measured = descriptor_ps(program.dmas, hardware.get("trn2"))[0] / 1000
    assert measured == pytest.approx(nanoseconds, rel=0.05)


def test_long_rows_travel_as_packets_of_4_kib():
    core = hardware.get("trn2")
    long = descriptor_ps(transfer(1, 16384).dmas, core)[0]
    short = descriptor_ps(transfer(1, 4096).dmas, core)[0]
    assert long == pytest.approx(4 * short)


@pytest.mark.parametrize(
    ("rows", "partitions", "engines"), [(128, 128, 16), (4, 4, 1), (32, 32, 4), (3, 0, 3), (500, 0, 16)]
)
def test_each_engine_serves_eight_partitions(rows, partitions, engines):
    program = transfer(rows, 512, partitions=partitions)
    assert engines_used(program.dmas, hardware.get("trn2"))[0] == engines


def test_issue_cost_follows_how_descriptors_are_made():
    core = hardware.get("trn2")
    hardware_made = trigger_costs(transfer(128, 4096), core)
    more = trigger_costs(transfer(256, 2048), core)
    software_made = trigger_costs(transfer(128, 4096, kind=QueueKind.SOFTWARE_DYNAMIC), core)
    assert 517_000 <= hardware_made[1][0] <= 605_000
    assert more[1][0] == pytest.approx(572_000, rel=0.02)
    assert 31_000 <= software_made[1][0] - software_made[0][0] <= 91_000
    assert software_made[0][0] == pytest.approx(580_000, rel=0.02)


# Trn2 traces, transfers that had the engines to themselves, by packets: (packets, bytes, route, kind,
# trigger to first packet, trigger to done).
@pytest.mark.parametrize(
    ("rows", "row_bytes", "source", "destination", "kind", "first_ns", "done_ns"),
    [
        (128, 4096, Memory.SBUF, Memory.HBM, QueueKind.HARDWARE_DYNAMIC, 1208, 2599),
        (256, 2048, Memory.SBUF, Memory.HBM, QueueKind.HARDWARE_DYNAMIC, 1234, 2669),
        (128, 512, Memory.HBM, Memory.SBUF, QueueKind.HARDWARE_DYNAMIC, 1326, 1813),
        (128, 256, Memory.HBM, Memory.SBUF, QueueKind.HARDWARE_DYNAMIC, 1332, 1678),
        (128, 2048, Memory.HBM, Memory.SBUF, QueueKind.SOFTWARE_DYNAMIC, 760, 2121),
        (64, 4096, Memory.SBUF, Memory.HBM, QueueKind.SOFTWARE_DYNAMIC, 633, 1668),
        (32, 4096, Memory.SBUF, Memory.HBM, QueueKind.SOFTWARE_DYNAMIC, 643, 1340),
        (1024, 256, Memory.SBUF, Memory.HBM, QueueKind.SOFTWARE_DYNAMIC, 629, 2318),
    ],
)
def test_a_lone_transfer_is_within_5_percent_of_the_traces(
    rows, row_bytes, source, destination, kind, first_ns, done_ns
):
    program = transfer(rows, row_bytes, source=source, destination=destination, kind=kind)
    result = simulate(program, hardware.get("trn2"))
    assert (result.dma_start_ps - result.dma_trigger_ps)[0] / 1000 == pytest.approx(first_ns, rel=0.05)
    assert (result.dma_end_ps - result.dma_trigger_ps)[0] / 1000 == pytest.approx(done_ns, rel=0.05)


# pantheonneuron, trn1.2xlarge, one core, HBM to SBUF.
@pytest.mark.parametrize(("row_bytes", "gigabytes_per_second"), [(1024, 208), (4096, 269.5), (16384, 269.8)])
def test_sustained_reads_on_trn1_reach_the_measured_rate(row_bytes, gigabytes_per_second):
    program = transfer(max(128, (4 << 20) // row_bytes), row_bytes, kind=QueueKind.DATA, count=64, queues=2)
    result = simulate(program, hardware.get("trn1"))
    rate = program.dmas["bytes"].sum() / (result.dma_end_ps.max() - result.dma_start_ps.min()) * 1e3
    assert rate == pytest.approx(gigabytes_per_second, rel=0.05)


def test_copies_within_hbm_on_trn1_reach_the_measured_rate():
    program = transfer(
        4096, 4096, destination=Memory.HBM, partitions=0, kind=QueueKind.DATA, count=16, queues=2
    )
    result = simulate(program, hardware.get("trn1"))
    both_ways = 2 * program.dmas["bytes"].sum() / (result.dma_end_ps.max() - result.dma_start_ps.min()) * 1e3
    assert both_ways == pytest.approx(307.9, rel=0.05)


def test_two_queues_share_the_engines_evenly():
    core = hardware.get("trn2").replace(dma_hardware_issue_ns=1.0)
    program = transfer(1280, 4096, count=2, queues=2)
    result = simulate(program, core)
    alone = simulate(transfer(1280, 4096), core)
    together = (result.dma_end_ps - result.dma_start_ps) / (alone.dma_end_ps - alone.dma_start_ps)
    assert together == pytest.approx([2, 2], rel=0.05)


def test_hbm_bandwidth_bounds_all_transfers_together():
    core = hardware.get("trn2").replace(hbm_bandwidth=100e9)
    program = transfer(1280, 4096, count=4, queues=4)
    result = simulate(program, core)
    seconds = (result.dma_end_ps.max() - result.dma_start_ps.min()) * 1e-12
    assert program.dmas["bytes"].sum() / seconds <= 100e9


def test_a_dma_transpose_is_slower_than_a_copy():
    core = hardware.get("trn2")
    assert (
        dma_costs(transfer(128, 512, transpose=True), core)["work"][0]
        > dma_costs(transfer(128, 512), core)["work"][0]
    )


def test_host_transfers_go_at_the_rate_of_the_host_link():
    core = hardware.get("trn2")
    program = transfer(16384, 4096, source=Memory.HOST, destination=Memory.HBM, partitions=0)
    result = simulate(program, core)
    seconds = (result.dma_end_ps[0] - result.dma_start_ps[0]) * 1e-12
    assert program.dmas["bytes"][0] / seconds <= core.host_link_bandwidth


def test_a_full_queue_holds_its_next_trigger():
    core = hardware.get("trn2").replace(dma_outstanding_per_queue=2)
    result = simulate(transfer(1280, 4096, count=4), core)
    third = result.start_ps[2]
    assert third >= result.dma_end_ps[0] - 9_000
    assert result.wait_cause[2] == -2
