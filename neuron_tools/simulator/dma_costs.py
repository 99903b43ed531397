"""What DMAs cost: work on the DMA engines, delays before the first byte, issue cost of their triggers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import DMA_DTYPE, Memory, Program, QueueKind, empty_table

SHARE = 1024
"""Shares of one DMA engine in which rates are counted, so that fair sharing stays in integers."""

PARTIAL_WRITE_BYTES = 512
"""Writes to HBM of less than this cost extra (descriptor guidance of the NKI DMA guide)."""

_HARDWARE_DESCRIPTORS = 128
"""Descriptors of the transfers whose issue cost was measured; more of them cost more."""


DMA_COST_DTYPE = np.dtype(
    [
        ("work", "i8"),  # engine time in SHARE-ths of a picosecond, over all engines
        ("cap", "i8"),  # most engine shares it can use at once
        ("hbm_bytes_per_work", "f8"),  # HBM bytes (both directions) per unit of work
        (
            "issue_ps",
            "i8",
        ),  # start of the trigger instruction to the trigger, while software makes descriptors
        ("delay_ps", "i8"),  # trigger to first packet
        ("startup_ps", "i8"),  # first packet to steady streaming when its queue was idle
        ("collective", "i4"),  # collective that it takes part in, of all that run together; -1 = none
    ]
)


def descriptor_ps(dmas: npt.NDArray[np.void], core: NeuronCore) -> Floats:
    """Time of one descriptor on one engine: packets of at most 4 KiB, each bytes / rate + overhead.

    Where the element type changes, the wider side's bytes stream: casts go through fp32 (NKI DMA guide).
    Source: Trn2 traces (256 B 17, 512 B 27, 2 KiB 83, 4 KiB 158 ns). Shape (dmas,).
    """
    size = np.maximum(dmas["descriptor_bytes"].astype(np.float64), 1.0) * np.maximum(dmas["cast"], 1)
    packets = np.ceil(size / core.dma_maximum_packet_bytes)
    to_hbm = dmas["destination_memory"] == Memory.HBM
    partial = np.where(to_hbm & (size < PARTIAL_WRITE_BYTES), core.dma_partial_write_ns, 0.0)
    nanoseconds = size / core.dma_engine_bandwidth * 1e9 + packets * core.dma_packet_overhead_ns + partial
    jump = np.maximum(nanoseconds + core.dma_strided_overhead_ns, core.dma_strided_minimum_ns)
    nanoseconds = np.where(dmas["strided"] != 0, jump, nanoseconds)
    return np.asarray(nanoseconds * 1000.0 / _efficiency(dmas, core))


@lru_cache(maxsize=4096)
def stretch_time_ns(core: NeuronCore, byte_count: int, *, strided: bool) -> float:
    """Time of one DMA engine for a descriptor of so many bytes, read from HBM.

    Args:
        core: What moves it.
        byte_count: Contiguous bytes.
        strided: The next descriptor starts a new stretch of HBM.
    """
    row = empty_table(DMA_DTYPE, 1)
    row["source_memory"], row["destination_memory"] = Memory.HBM, Memory.SBUF
    row["descriptor_bytes"], row["strided"] = byte_count, strided
    return float(descriptor_ps(row, core)[0]) / 1e3


def engines_used(dmas: npt.NDArray[np.void], core: NeuronCore) -> Ints:
    """DMA engines that a DMA spreads over: 8 partitions each, or one a descriptor. Shape (dmas,)."""
    by_partition = -(-dmas["partitions"].astype(np.int64) // core.dma_partitions_per_engine)
    by_descriptor = np.maximum(dmas["descriptors"].astype(np.int64), 1)
    engines = np.where(by_partition > 0, np.minimum(by_partition, by_descriptor), by_descriptor)
    return np.asarray(np.minimum(engines, core.dma_engines))


def dma_costs(program: Program, core: NeuronCore) -> npt.NDArray[np.void]:
    """Costs of all DMAs of a program, of DMA_COST_DTYPE and shape (dmas,); `collective` is -1."""
    dmas = program.dmas
    engines = engines_used(dmas, core)
    rounds = -(-np.maximum(dmas["descriptors"].astype(np.int64), 1) // engines)
    engine_ps = np.maximum(np.rint(rounds * descriptor_ps(dmas, core)), 1.0)
    engine_ps = np.maximum(engine_ps, _host_ps(dmas, core))
    work = (engine_ps * engines * SHARE).astype(np.int64)
    reads_hbm = dmas["source_memory"] == Memory.HBM
    writes_hbm = dmas["destination_memory"] == Memory.HBM
    touched = dmas["bytes"] * (reads_hbm.astype(np.int64) + writes_hbm)
    kind = _queue_kinds(program)
    software = kind == QueueKind.SOFTWARE_DYNAMIC
    moves = dmas["collective"] < 0
    costs = np.empty(len(dmas), DMA_COST_DTYPE)
    costs["work"] = work
    costs["cap"] = engines * SHARE
    costs["hbm_bytes_per_work"] = touched / work
    costs["issue_ps"] = np.where(software, _picoseconds(_software_issue_ns(dmas, core)), 0)
    costs["delay_ps"] = _picoseconds(_delay_ns(kind, reads_hbm, core)) * moves
    costs["startup_ps"] = _picoseconds(_startup_ns(software, reads_hbm | ~writes_hbm, core)) * moves
    costs["collective"] = -1
    return costs


def trigger_costs(program: Program, core: NeuronCore) -> tuple[Ints, Ints]:
    """(interval_ps, latency_ps) of the trigger of each DMA, by how its descriptors are made.

    Source: Trn2 traces: hardware descriptors 517-605 ns on the queue's engine, 36 ns more for 256 than for
    128 descriptors; software descriptors 580 ns between triggers of 128 descriptors. Shapes (dmas,).
    """
    kind = _queue_kinds(program)
    extra = np.maximum(program.dmas["descriptors"].astype(np.float64) - _HARDWARE_DESCRIPTORS, 0.0)
    extra *= core.dma_hardware_descriptor_ns
    made = _software_issue_ns(program.dmas, core)
    hardware, software = kind == QueueKind.HARDWARE_DYNAMIC, kind == QueueKind.SOFTWARE_DYNAMIC
    interval = np.select(
        [hardware, software], [core.dma_hardware_issue_ns + extra, made], core.dma_prebuilt_issue_ns
    )
    latency = np.select(
        [hardware, software],
        [core.dma_hardware_issue_duration_ns + extra, made + core.dma_software_issue_duration_ns],
        core.dma_prebuilt_issue_ns,
    )
    return _picoseconds(interval), _picoseconds(latency)


def _software_issue_ns(dmas: npt.NDArray[np.void], core: NeuronCore) -> Floats:
    return np.asarray(core.dma_software_issue_ns + core.dma_software_descriptor_ns * dmas["descriptors"])


def _startup_ns(software: npt.NDArray[np.bool_], reads: npt.NDArray[np.bool_], core: NeuronCore) -> Floats:
    made_by_software = np.where(reads, core.dma_software_read_startup_ns, core.dma_software_write_startup_ns)
    return np.where(
        software, made_by_software, np.where(reads, core.dma_read_startup_ns, core.dma_write_startup_ns)
    )


def _efficiency(dmas: npt.NDArray[np.void], core: NeuronCore) -> Floats:
    from_hbm = dmas["source_memory"] == Memory.HBM
    to_hbm = dmas["destination_memory"] == Memory.HBM
    copy = np.where(from_hbm & to_hbm, core.dma_hbm_to_hbm_efficiency, 1.0)
    turned = np.where(from_hbm, core.dma_transpose_efficiency, core.dma_sbuf_transpose_efficiency)
    return np.asarray(copy * np.where(dmas["transpose"] != 0, turned, 1.0))


def _host_ps(dmas: npt.NDArray[np.void], core: NeuronCore) -> Floats:
    host = (dmas["source_memory"] == Memory.HOST) | (dmas["destination_memory"] == Memory.HOST)
    return np.where(host, np.ceil(dmas["bytes"] / core.host_link_bandwidth * 1e12), 0.0)


def _delay_ns(kind: npt.NDArray[np.int64], reads_hbm: npt.NDArray[np.bool_], core: NeuronCore) -> Floats:
    hardware = np.where(reads_hbm, core.dma_hardware_read_delay_ns, core.dma_hardware_write_delay_ns)
    software = np.where(reads_hbm, core.dma_software_read_delay_ns, core.dma_software_write_delay_ns)
    made = np.where(kind == QueueKind.SOFTWARE_DYNAMIC, software, core.dma_prebuilt_delay_ns)
    return np.where(kind == QueueKind.HARDWARE_DYNAMIC, hardware, made)


def _queue_kinds(program: Program) -> npt.NDArray[np.int64]:
    kinds = np.array([queue.kind for queue in program.queues], np.int64)
    return np.asarray(kinds[program.dmas["queue"]]) if len(program.dmas) else np.zeros(0, np.int64)


def _picoseconds(nanoseconds: Floats) -> Ints:
    return np.asarray(np.rint(nanoseconds * 1000.0).astype(np.int64))
