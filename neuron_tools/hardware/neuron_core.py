"""NeuronCore: every figure of one core that timing and counters rest on, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from neuron_tools.frozen import frozen
from neuron_tools.hardware.errors import UnknownFigureError

Figures = TypeVar("Figures", bound=Any)


@frozen
class NeuronCore:
    """One physical NeuronCore of a target, with its share of the chip's memory.

    Values come from `data/neuron_cores.json`, where each has its source; `hardware.figure(target, name)`
    shows it. Clocks are in GHz, bandwidths in bytes per second, sizes in bytes, times in nanoseconds.
    A `*_speed_*` is a rate relative to bf16.
    """

    name: str  # "NeuronCore-v3"
    target: str  # "trn2"
    chip: str  # "Trainium2"
    instance_type: str  # "trn2.48xlarge"
    generation: int
    logical_core_size: int  # physical cores that the runtime joins into one by default (LNC)

    clock_ghz: float  # the profiler's cycle counter
    tensor_clock_ghz: float
    vector_clock_ghz: float
    scalar_clock_ghz: float
    gpsimd_clock_ghz: float
    sync_clock_ghz: float
    tensor_rows: int
    tensor_columns: int
    vector_lanes: int
    scalar_lanes: int
    gpsimd_lanes: int
    matmul_moving_columns: int
    tensor_speed_f32: float
    tensor_speed_f32_row: float  # where the operands lie on one partition: a row for all of them
    tensor_speed_f32_transpose: float
    tensor_f32_load_passes: int  # of one of the two LDWEIGHTS of an fp32 matmul
    tensor_f32_transpose_load_passes: int
    tensor_dispatch_ns: float  # LDWEIGHTS or MATMUL start to the next one reaching the engine's head
    tensor_speed_fp8: float
    tensor_speed_mx: float

    sbuf_partitions: int
    sbuf_bytes_per_partition: int
    weight_cache_bytes: int  # of SBUF, for weights that stay from one execution to the next; 0: none do
    psum_bytes_per_partition: int
    psum_banks: int

    vector_gpsimd_sbuf_port: (
        int  # 0: a port each; 1: one at a time; 2: the same in Vector's performance modes
    )
    vector_scalar_psum_port: int  # 0: a port each; 1: one at a time

    hbm_bytes: int  # of the default logical core
    hbm_bandwidth: float  # of the stack the core uses
    hbm_cores: int  # physical cores that share that stack

    dma_bandwidth: float  # peak of all the core's DMA engines
    dma_engines: int
    dma_queues_per_engine: int
    dma_partitions_per_engine: int
    dma_maximum_packet_bytes: int
    dma_streaming_efficiency: float  # share of dma_bandwidth at which the bytes of a packet stream
    dma_packet_overhead_ns: float
    dma_strided_minimum_ns: float  # least time of a packet that starts a new stretch of HBM
    dma_strided_overhead_ns: float  # added to such a packet
    dma_partial_write_ns: float  # added to a packet under 512 B written to HBM
    dma_hbm_to_hbm_efficiency: float
    dma_transpose_efficiency: float
    dma_sbuf_transpose_efficiency: float
    dma_semaphore_ns: float
    dma_read_startup_ns: float  # first byte of an idle queue to steady streaming, from HBM
    dma_write_startup_ns: float  # the same, to HBM
    dma_software_read_startup_ns: float  # the same two for software descriptors
    dma_software_write_startup_ns: float
    dma_semaphore_latency_ns: float  # completion to the start of the waiting instruction
    dma_hardware_issue_ns: float  # trigger to next trigger, hardware descriptors
    dma_hardware_issue_duration_ns: float  # length of the trigger instruction, hardware descriptors
    dma_hardware_descriptor_ns: float  # added to both for every descriptor over 128
    dma_hardware_read_delay_ns: float  # trigger start to first packet, from HBM
    dma_hardware_write_delay_ns: float  # the same, to HBM
    dma_software_issue_ns: float  # making descriptors: this much, and more for each
    dma_software_descriptor_ns: float
    dma_software_issue_duration_ns: float  # after they are made
    dma_software_read_delay_ns: float  # descriptors made to first packet, from HBM
    dma_software_write_delay_ns: float
    dma_prebuilt_issue_ns: float
    dma_prebuilt_delay_ns: float
    dma_outstanding_per_queue: int  # unfinished DMAs of a queue before its next trigger waits

    semaphore_ns: float  # end of the producer to start of the waiting instruction
    semaphore_tensor_ns: float  # the same when the Tensor engine waits

    throttle_window_ns: float
    throttle_steps: int  # the N of the limit K/N
    throttle_initial: int  # K of the first window
    throttle_idle: int  # K after a window at or below the threshold
    throttle_busy: int  # K after a window above it
    throttle_threshold: float  # share of the window that the Tensor engine streamed at full rate

    launch_overhead_ns: float  # what a host's latency measurement has beyond the kernel's body
    profile_prologue_ns: float  # device profile before the first DMA of the kernel
    profile_epilogue_ns: float  # device profile after the last DMA's semaphore
    host_link_bandwidth: float
    host_transfer_latency_ns: float
    host_synchronous_dispatch_ns: float

    @property
    def sbuf_bytes(self) -> int:
        """Bytes of SBUF."""
        return self.sbuf_partitions * self.sbuf_bytes_per_partition

    @property
    def psum_bytes(self) -> int:
        """Bytes of PSUM."""
        return self.sbuf_partitions * self.psum_bytes_per_partition

    @property
    def psum_bank_bytes(self) -> int:
        """Bytes per partition of one PSUM bank."""
        return self.psum_bytes_per_partition // self.psum_banks

    @property
    def peak_tensor_flops(self) -> float:
        """Bf16 FLOP per second of the Tensor engine: 2 x rows x columns x clock."""
        return 2.0 * self.tensor_rows * self.tensor_columns * self.tensor_clock_ghz * 1e9

    @property
    def dma_engine_bandwidth(self) -> float:
        """Bytes per second at which one DMA engine streams the bytes of a packet."""
        return self.dma_bandwidth / self.dma_engines * self.dma_streaming_efficiency

    def tensor_speed(self, dtype: str) -> float:
        """Matmul rate of `dtype` relative to bf16. `dtype` is a lower-case name such as "f32"."""
        if dtype.startswith("mx"):
            return self.tensor_speed_mx
        if dtype.startswith(("f8", "fp8")):
            return self.tensor_speed_fp8
        return self.tensor_speed_f32 if dtype in ("f32", "fp32") else 1.0

    def peak_flops(self, dtype: str) -> float:
        """Peak matmul FLOP per second of `dtype`."""
        return self.peak_tensor_flops * self.tensor_speed(dtype)

    def replace(self, **figures: object) -> NeuronCore:
        """A core that differs in the named figures, for what-if runs.

        Raises:
            UnknownFigureError: A name is no figure of a NeuronCore.
        """
        return with_figures(self, figures, "A NeuronCore has")


def with_figures(record: Figures, figures: Mapping[str, object], owner: str) -> Figures:
    """A record that differs in the named figures.

    Args:
        record: A data class of figures.
        figures: Values by name.
        owner: Whose figures they are, as a sentence about them begins: "Links have".

    Raises:
        UnknownFigureError: A name is no figure of the record.
    """
    known = {field.name for field in fields(record)}
    for name in figures:
        if name not in known:
            raise UnknownFigureError(f"{owner} no figure {name!r}; there are: {', '.join(sorted(known))}.")
    return replace(record, **figures)
