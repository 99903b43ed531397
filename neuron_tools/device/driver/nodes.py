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
_NS_PER_US = 1000
_NOTHING = Memory()


class Node(NamedTuple):
    """The three values of a counter; `peak` is None where it has no such file."""

    total: int
    present: int
    peak: int | None = None

    def files(self) -> Iterator[tuple[str, int]]:
        """(file name, value) of each."""
        yield "total", self.total
        yield "present", self.present
        if self.peak is not None:
            yield "peak", self.peak


def core_nodes(ever: CoreCounts, present: CoreCounts) -> dict[str, Node]:
    """The counters of one core by path below its folder.

    Args:
        ever: Of all processes since the tree was made.
        present: Of those that still run.
    """
    before, now = _counters(ever), _counters(present)
    nodes = {path: Node(value, now[path]) for path, value in before.items()}
    memory = {name: _memory_node(ever, present, name) for name in DEVICE_MEMORY}
    base = "stats/memory_usage"
    nodes |= {f"{base}/device_mem/{name}": node for name, node in memory.items()}
    nodes[f"{base}/device_mem"] = _sum_of(memory.values())
    nodes[f"{base}/host_mem"] = Node(0, 0, 0)
    return nodes


def histogram_text(counts: dict[int, int]) -> str:
    """A latency histogram as its node shows it: a line `UPPER_NS COUNT` for each bound."""
    return "".join(f"{bound} {count}\n" for bound, count in sorted(counts.items()))


def _counters(core: CoreCounts) -> dict[str, int]:
    """Counters by path; those that only the hardware could count are 0."""
    other = "stats/other_info"
    return {
        **{f"stats/status/{name}": core.status.get(name, 0) for name in STATUSES},
        f"{other}/model_load_count": core.model_load_count,
        f"{other}/reset_req_count": 0,
        f"{other}/reset_fail_count": 0,
        f"{other}/inference_count": core.inference_count,
        f"{other}/flop_count": core.flop_count,
        f"{other}/nc_time_in_use": core.busy_ns // _NS_PER_US,
        "stats/clock/elapsed_ns": core.elapsed_ns,
        **{f"stats/engine_busy_ns/{name}": core.engine_busy_ns.get(name, 0) for name in ENGINES},
        **{f"stats/traffic/{name}": core.traffic.get(name, 0) for name in TRAFFIC},
        "stats/throttle/throttled_ns": core.throttled_ns,
    }


def _memory_node(ever: CoreCounts, present: CoreCounts, name: str) -> Node:
    before, now = ever.device_memory.get(name, _NOTHING), present.device_memory.get(name, _NOTHING)
    # As the real driver: `total` of memory is what is held now.
    return Node(now.present, now.present, max(before.peak, now.present))


def _sum_of(nodes: Iterable[Node]) -> Node:
    """All categories together; the peak is at most the sum of theirs, which need not have met."""
    rows = list(nodes)
    return Node(sum(n.total for n in rows), sum(n.present for n in rows), sum(n.peak or 0 for n in rows))
