"""The nodes below a core's folder and how a core's counts fill them.

Names and formats are those of the Neuron driver (aws-neuron-sdk,
tools/neuron-sys-tools/neuron-sysfs-user-guide.rst); those of our own are in docs/simulated-driver.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from neuron_tools.device.driver.counts import CoreCounts, Memory

STATUSES = (
    "success", "failure", "timeout", "exec_bad_input", "hw_error", "execute_completed_with_error",
    "execute_completed_with_num_error", "generic_error", "resource_error", "resource_nc_error",
    "execute_failed_to_queue", "invalid_error", "unsupported_neff_version", "oob_error",
    "hw_collectives_error", "hw_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error",
    "execute_sw_nq_overflow", "execute_sw_semaphore_error", "execute_sw_event_error",
    "execute_sw_psum_collision", "execute_sw_sequencer_fatal", "hw_repairable_hbm_ue_error",
)  # fmt: skip
DEVICE_MEMORY = (
    "model_code", "tensors", "constants", "model_shared_scratchpad", "runtime_memory", "driver_memory",
    "collectives", "nonshared_scratchpad", "notifications", "dma_rings", "uncategorized",
)  # fmt: skip
HOST_MEMORY = (
    "application_memory", "constants", "dma_buffers", "dma_rings", "driver_memory", "notifications",
    "tensors", "uncategorized",
)  # fmt: skip
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
TRAFFIC = (
    "hbm_read_bytes", "hbm_write_bytes", "dma_bytes", "host_to_device_bytes", "device_to_host_bytes",
)  # fmt: skip
ECC = (
    "sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_corrected",
    "mem_ecc_corrected",
)  # fmt: skip
LATENCIES = ("device", "total")
OTHER = (
    "model_load_count", "reset_req_count", "reset_fail_count", "inference_count", "flop_count",
    "nc_time_in_use",
)  # fmt: skip
CORE_NODES = (
    *(f"stats/status/{name}" for name in STATUSES),
    *(f"stats/other_info/{name}" for name in OTHER),
    "stats/clock/elapsed_ns",
    *(f"stats/engine_busy_ns/{name}" for name in ENGINES),
    *(f"stats/traffic/{name}" for name in TRAFFIC),
    "stats/throttle/throttled_ns",
    *(f"stats/memory_usage/device_mem/{name}" for name in DEVICE_MEMORY),
    "stats/memory_usage/device_mem",
    "stats/memory_usage/host_mem",
)
"""Paths of a core's counters below its folder."""
NODE_FILES = ("total", "present", "peak")
_NS_PER_US = 1000
_NOTHING = Memory()


class Node(NamedTuple):
    """The three values of a counter; `peak` is None where it has no such file."""

    total: int
    present: int
    peak: int | None = None

    def values(self) -> tuple[int, ...]:
        """The value of each of the counter's files, which are the first of `NODE_FILES`."""
        return (self.total, self.present) if self.peak is None else (self.total, self.present, self.peak)

    def files(self) -> Iterator[tuple[str, int]]:
        """(file name, value) of each."""
        return zip(NODE_FILES, self.values())


def core_nodes(ever: CoreCounts, present: CoreCounts) -> dict[str, Node]:
    """The counters of one core by path below its folder.

    Args:
        ever: Of all processes since the tree was made.
        present: Of those that still run; may be the same object.
    """
    return dict(zip(CORE_NODES, core_node_values(ever, present)))


def core_node_values(ever: CoreCounts, present: CoreCounts) -> list[Node]:
    """The counters of one core in the order of `CORE_NODES`; the arguments are those of `core_nodes`."""
    before = _counters(ever)
    now = before if present is ever else _counters(present)
    memory = [_memory_node(ever, present, name) for name in DEVICE_MEMORY]
    return [*map(Node, before, now), *memory, _sum_of(memory), Node(0, 0, 0)]


def histogram_text(counts: dict[int, int]) -> str:
    """A latency histogram as its node shows it: a line `UPPER_NS COUNT` for each bound."""
    return "".join(f"{bound} {count}\n" for bound, count in sorted(counts.items()))


def _counters(core: CoreCounts) -> list[int]:
    """The counters that are no memory; those that only the hardware could count are 0."""
    return [
        *(core.status.get(name, 0) for name in STATUSES),
        *(core.model_load_count, 0, 0, core.inference_count, core.flop_count, core.busy_ns // _NS_PER_US),
        core.elapsed_ns,
        *(core.engine_busy_ns.get(name, 0) for name in ENGINES),
        *(core.traffic.get(name, 0) for name in TRAFFIC),
        core.throttled_ns,
    ]


def _memory_node(ever: CoreCounts, present: CoreCounts, name: str) -> Node:
    before, now = ever.device_memory.get(name, _NOTHING), present.device_memory.get(name, _NOTHING)
    # As the real driver: `total` of memory is what is held now.
    return Node(now.present, now.present, max(before.peak, now.present))


def _sum_of(nodes: Iterable[Node]) -> Node:
    """All categories together; the peak is at most the sum of theirs, which need not have met."""
    rows = list(nodes)
    return Node(sum(n.total for n in rows), sum(n.present for n in rows), sum(n.peak or 0 for n in rows))
