"""Samples over time: SBUF and PSUM occupancy, HBM and DMA throughput, DMAs under way, MFU, throttling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.table_template import TableTemplate
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.executable import Executable
from neuron_tools.simulator.counters import dma_counters, product_flops
from neuron_tools.simulator.occupancy import (
    SBUF_SAMPLED_PARTITIONS,
    OccupancySamples,
    psum_occupancy,
    sbuf_occupancy,
)
from neuron_tools.simulator.throughput import ThroughputSamples, pending, throughput

SHORTEST_WINDOW_PS = 1_000_000
MOST_WINDOWS = 1000
FULL_RATE_TYPE, LIMITED_TYPE = "0", "1"  # as the published traces number their throttle records


def usage_tables(
    executable: Executable, core: NeuronCore, pools: Mapping[str, TextPools]
) -> dict[str, TableTemplate]:
    """Relative sample rows of one executable, by table."""
    program, simulation = executable.program, executable.simulation
    moved = dma_counters(program)
    hbm = moved.hbm_read_bytes + moved.hbm_write_bytes
    return {
        "SbufUsage": _occupancy(
            sbuf_occupancy(program, simulation, core), [f"partition_{p}" for p in SBUF_SAMPLED_PARTITIONS]
        ),
        "PsumUsage": _occupancy(
            psum_occupancy(program, simulation, core), [f"bank_{bank}" for bank in range(core.psum_banks)]
        ),
        "DmaUsage": _throughput(executable, program.dmas["bytes"].astype(np.int64)),
        "HbmUsage": _throughput(executable, hbm),
        "PendingDma": _pending(executable),
        "MfuUsage": _mfu(executable, core),
        "Throttle": _throttle(executable, pools["Throttle"]),
    }


def _occupancy(samples: OccupancySamples, names: list[str]) -> TableTemplate:
    shares = samples.used.astype(np.float32)
    numbers = {f"{name}_util_percent": shares[:, index] for index, name in enumerate(names)}
    numbers["avg_util_percent"] = shares.mean(axis=1)
    return TableTemplate(len(shares), numbers, {"timestamp": _ns(samples.time_ps)})


def _throughput(executable: Executable, moved_bytes: Ints) -> TableTemplate:
    simulation = executable.simulation
    window_ps = _window_ps(executable)
    samples = throughput(simulation.dma_start_ps, simulation.dma_end_ps, moved_bytes, window_ps)
    time_ps, rate = _ending_in_rest(samples, window_ps)
    numbers: dict[str, npt.NDArray[Any]] = {
        "current_throughput": rate.astype(np.float32),
        "total_transfer_bytes": np.append(samples.total_bytes, samples.total_bytes[-1:]),
    }
    return TableTemplate(len(time_ps), numbers, {"timestamp": _ns(time_ps)})


def _mfu(executable: Executable, core: NeuronCore) -> TableTemplate:
    """FLOPs of matrix products, transposes left out, against the peak that the summary's MFU takes."""
    program, simulation = executable.program, executable.simulation
    raw_flops, turned = product_flops(program)
    flops = np.where(turned, 0, raw_flops)
    window_ps = _window_ps(executable)
    samples = throughput(simulation.start_ps, simulation.end_ps, flops, window_ps)
    time_ps, rate = _ending_in_rest(samples, window_ps)
    share = np.clip(rate / core.peak_flops("bf16"), 0.0, 1.0)
    return TableTemplate(len(time_ps), {"mfu": share.astype(np.float32)}, {"timestamp": _ns(time_ps)})


def _window_ps(executable: Executable) -> int:
    return max(SHORTEST_WINDOW_PS, -(-executable.simulation.duration_ps // MOST_WINDOWS))


def _ending_in_rest(samples: ThroughputSamples, window_ps: int) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Times and rates with a last sample of 0: a value holds until the next, and after the end is rest."""
    end = samples.time_ps[-1:] + window_ps
    return np.append(samples.time_ps, end), np.append(samples.bytes_per_second, np.zeros(len(end)))


def _pending(executable: Executable) -> TableTemplate:
    simulation = executable.simulation
    time_ps, count = pending(simulation.dma_trigger_ps, simulation.dma_end_ps)
    return TableTemplate(len(count), {"value": count.astype(np.int32)}, {"timestamp": _ns(time_ps)})


def _throttle(executable: Executable, pools: TextPools) -> TableTemplate:
    table = executable.simulation.throttle
    kinds = np.where(table["k"] < table["n"], LIMITED_TYPE, FULL_RATE_TYPE).tolist()
    start_ns = _ns(table["start_ps"])
    numbers: dict[str, npt.NDArray[Any]] = {
        "duration": _ns(table["start_ps"] + table["duration_ps"]) - start_ns,
        "k": table["k"],
        "n": table["n"],
    }
    return TableTemplate(
        len(table), numbers, {"timestamp": start_ns}, texts={"type": pools["type"].codes(kinds)}
    )


def _ns(picoseconds: Ints) -> Ints:
    return np.asarray(picoseconds, np.int64) // 1000
