"""Names of the nodes in a Neuron device's sysfs tree, and what groups them.

Source: aws-neuron-sdk, tools/neuron-sys-tools/neuron-sysfs-user-guide.rst, and aws-neuron-driver's node names
(September 2025). Where a name changed between driver versions, the older ones stand behind the newer.
Nodes that only the simulated driver has: docs/simulated-driver.md.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

REAL_ROOT = "/sys/devices/virtual/neuron_device"
ROOT_VARIABLE = "NEURON_SYSFS_ROOT"

STATUS_NODES: dict[str, tuple[str, ...]] = {
    "success": ("success",),
    "failure": ("failure",),
    "timeout": ("timeout",),
    "exec_bad_input": ("exec_bad_input",),
    "hw_error": ("hw_error",),
    "execute_completed_with_error": ("execute_completed_with_error", "infer_completed_with_error"),
    "execute_completed_with_num_error": (
        "execute_completed_with_num_error",
        "infer_completed_with_num_error",
    ),
    "generic_error": ("generic_error",),
    "resource_error": ("resource_error",),
    "resource_nc_error": ("resource_nc_error",),
    "execute_failed_to_queue": ("execute_failed_to_queue", "infer_failed_to_queue"),
    "invalid_error": ("invalid_error",),
    "unsupported_neff_version": ("unsupported_neff_version",),
    "oob_error": ("oob_error",),
    "hw_collectives_error": ("hw_collectives_error",),
    "hw_hbm_ue_error": ("hw_hbm_ue_error",),
    "hw_nc_ue_error": ("hw_nc_ue_error",),
    "hw_dma_abort_error": ("hw_dma_abort_error",),
    "execute_sw_nq_overflow": ("execute_sw_nq_overflow",),
    "execute_sw_semaphore_error": ("execute_sw_semaphore_error",),
    "execute_sw_event_error": ("execute_sw_event_error",),
    "execute_sw_psum_collision": ("execute_sw_psum_collision",),
    "execute_sw_sequencer_fatal": ("execute_sw_sequencer_fatal",),
    "hw_repairable_hbm_ue_error": ("hw_repairable_hbm_ue_error",),
}
DEVICE_MEMORY_CATEGORIES = (
    "model_code",
    "tensors",
    "constants",
    "model_shared_scratchpad",
    "runtime_memory",
    "driver_memory",
    "collectives",
    "nonshared_scratchpad",
    "notifications",
    "dma_rings",
    "uncategorized",
)
HOST_MEMORY_CATEGORIES = (
    "application_memory",
    "constants",
    "dma_buffers",
    "dma_rings",
    "driver_memory",
    "notifications",
    "tensors",
    "uncategorized",
)
ECC_NODES = (
    "mem_ecc_corrected",
    "mem_ecc_uncorrected",
    "sram_ecc_uncorrected",
    "sram_ecc_corrected",
    "mem_ecc_repairable_uncorrected",
)
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
TRAFFIC_NODES = (
    "hbm_read_bytes",
    "hbm_write_bytes",
    "dma_bytes",
    "host_to_device_bytes",
    "device_to_host_bytes",
)
PROGRESS_NODES = ("inference_count", "nc_time_in_use")
ACTIVITY_NODES = ("flop_count", "model_load_count")
POWER_STATUS_VALID = "POWER_STATUS_VALID"


def _columns() -> tuple[tuple[str, tuple[str, ...], bool], ...]:
    """(name, paths below a core's folder, whether every driver has it) of each column of a core."""
    other = "stats/other_info"
    rows: list[tuple[str, tuple[str, ...], bool]] = [
        ("elapsed_ns", ("stats/clock/elapsed_ns/total",), False),
        *((name, (f"{other}/{name}/total",), True) for name in PROGRESS_NODES),
        ("device_memory", ("stats/memory_usage/device_mem/total",), False),
        *((name, (f"{other}/{name}/total",), True) for name in ACTIVITY_NODES),
        ("throttled_ns", ("stats/throttle/throttled_ns/total",), False),
        *((name, (f"stats/engine_busy_ns/{name}/total",), False) for name in ENGINES),
        *((name, (f"stats/traffic/{name}/total",), False) for name in TRAFFIC_NODES),
        *(
            (name, tuple(f"stats/status/{old}/total" for old in names), name in _OLD_STATUSES)
            for name, names in STATUS_NODES.items()
        ),
        *(
            (name, (f"stats/memory_usage/device_mem/{name}/total",), name in _OLD_CATEGORIES)
            for name in DEVICE_MEMORY_CATEGORIES
        ),
    ]
    return tuple(rows)


# What even the oldest supported driver has: only their absence is a fault.
_OLD_STATUSES = (
    "success",
    "failure",
    "timeout",
    "exec_bad_input",
    "hw_error",
    "execute_completed_with_error",
    "execute_completed_with_num_error",
    "generic_error",
    "resource_error",
    "execute_failed_to_queue",
)
_OLD_CATEGORIES = ("model_code", "tensors", "constants", "model_shared_scratchpad", "runtime_memory")

CORE_COLUMNS = _columns()
COLUMN_OF = {name: position for position, (name, _, _) in enumerate(CORE_COLUMNS)}
# What a report's rates are made of is read each time, the simulated driver's times of engines and traffic
# when one of these moved, memory by category when its total did; the rest only now and then.
PROGRESS_COLUMNS = ("elapsed_ns", "nc_time_in_use", "success", "flop_count")
ACTIVITY_COLUMNS = ("throttled_ns", *ENGINES, *TRAFFIC_NODES)
ENGINE_SLICE = slice(COLUMN_OF[ENGINES[0]], COLUMN_OF[ENGINES[-1]] + 1)
TRAFFIC_SLICE = slice(COLUMN_OF[TRAFFIC_NODES[0]], COLUMN_OF[TRAFFIC_NODES[-1]] + 1)
STATUS_SLICE = slice(COLUMN_OF["success"], COLUMN_OF["hw_repairable_hbm_ue_error"] + 1)
MEMORY_SLICE = slice(COLUMN_OF["model_code"], COLUMN_OF["uncategorized"] + 1)
# What no host reaches: 256 TiB of one memory, 2^53 executions. Beyond, a node holds garbage; sums of what is
# within fit into 64 bits. The other counters count up to a whole unsigned word.
MOST_BYTES = 1 << 48
MOST_EVENTS = 1 << 53
MOST_COUNT = (1 << 64) - 1
EVENT_NODES = frozenset((*STATUS_NODES, "inference_count", "model_load_count"))
MEMORY_NODES = frozenset((*DEVICE_MEMORY_CATEGORIES, "device_memory"))
CORE_LIMITS = tuple(
    MOST_BYTES if name in MEMORY_NODES else MOST_EVENTS if name in EVENT_NODES else MOST_COUNT
    for name, _, _ in CORE_COLUMNS
)
NO_COUNTS = (0,) * len(CORE_COLUMNS)
WORD_BYTES = 8


def packed(counts: Sequence[int]) -> bytes:
    """Counters as unsigned 64-bit integers in the order of the machine: what the inner loops take."""
    return struct.pack(f"={len(counts)}Q", *counts)


def unpacked(words: bytes) -> tuple[int, ...]:
    """The counters that are packed."""
    return struct.unpack(f"={len(words) // WORD_BYTES}Q", words)


def word(words: bytes, position: int) -> int:
    """One of the counters that are packed."""
    count: int = struct.unpack_from("=Q", words, WORD_BYTES * position)[0]
    return count


NO_WORDS = packed(NO_COUNTS)
