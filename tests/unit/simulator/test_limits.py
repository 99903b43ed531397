"""Nothing simulated ever beats the physical peaks of its chip."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools import hardware
from neuron_tools.records.program import (
    Collective,
    CollectiveKind,
    DType,
    Engine,
    Flag,
    Memory,
    Opcode,
    QueueKind,
)
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.collectives import bus_factor
from neuron_tools.simulator.counters import dma_counters, instruction_counters
from neuron_tools.simulator.multi_core import simulate_cores
from neuron_tools.simulator.simulation import simulate

from .programs import random_builder

TARGETS = hardware.targets()
relaxed = settings(max_examples=20, deadline=None)


def matmuls(core, dtype, elements, count, flags=Flag.NONE):
    build = ProgramBuilder("matmuls", target=core.target)
    for _ in range(count):
        build.instruction(
            Engine.TENSOR, Opcode.MATMUL, partitions=core.tensor_rows, columns=core.tensor_columns,
            elements=elements, input_dtype=dtype, source_memory=Memory.SBUF, destination_memory=Memory.PSUM,
            flags=flags,
        )  # fmt: skip
    return build.finish()


@pytest.mark.parametrize("target", TARGETS)
@given(
    dtype=st.sampled_from([DType.F32, DType.BF16, DType.FP8]),
    elements=st.integers(1, 512),
    flags=st.sampled_from([Flag.NONE, Flag.TRANSPOSE, Flag.FP32_HALF]),
)
@relaxed
def test_matmuls_never_beat_peak_flops(target, dtype, elements, flags):
    core = hardware.get(target)
    program = matmuls(core, dtype, elements, 20, flags)
    seconds = simulate(program, core).duration_ps * 1e-12
    counters = instruction_counters(program, core)
    assert counters.adjusted_flops.sum() / seconds <= core.peak_tensor_flops
    if flags == Flag.NONE:
        name = dtype.name.lower()
        assert counters.raw_flops.sum() / seconds <= core.peak_flops(name)


@pytest.mark.parametrize("target", TARGETS)
@given(seed=st.integers(0, 10_000))
@relaxed
def test_random_programs_never_beat_hbm_or_dma_bandwidth(target, seed):
    core = hardware.get(target)
    program = random_builder(seed, 60, dma_share=0.9).finish()
    result = simulate(program, core)
    if not len(program.dmas):
        return
    seconds = (result.dma_end_ps.max() - result.dma_start_ps.min()) * 1e-12
    moved = dma_counters(program)
    hbm = (moved.hbm_read_bytes + moved.hbm_write_bytes).sum()
    assert hbm / seconds <= core.hbm_bandwidth
    assert program.dmas["bytes"].sum() / seconds <= core.dma_bandwidth


@pytest.mark.parametrize("target", TARGETS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_cores_of_one_stack_together_never_beat_its_bandwidth(target, seed):
    device = hardware.device(target, lnc=1)
    cores = max(device.core.hbm_cores, 2)
    programs = [random_builder(seed + core, 40, dma_share=0.9).finish() for core in range(cores)]
    results = simulate_cores(programs, device)
    stacks = -(-cores // device.core.hbm_cores)
    moved = [dma_counters(program) for program in programs]
    bytes_moved = sum((one.hbm_read_bytes + one.hbm_write_bytes).sum() for one in moved)
    begin = min((result.dma_start_ps.min() for result in results if len(result.dma_start_ps)), default=0)
    end = max((result.dma_end_ps.max() for result in results if len(result.dma_end_ps)), default=1)
    assert bytes_moved / ((end - begin) * 1e-12) <= stacks * device.core.hbm_bandwidth


@pytest.mark.parametrize("target", TARGETS)
@given(
    byte_count=st.integers(1, 1 << 30), ranks=st.integers(2, 12), kind=st.sampled_from(list(CollectiveKind))
)
@settings(max_examples=8, deadline=None)
def test_collectives_never_beat_the_bandwidth_of_the_links(target, byte_count, ranks, kind):
    device = hardware.device(target, lnc=1)
    group = tuple(range(ranks))
    build = ProgramBuilder("rank", target=target)
    queue = build.queue("cc0", Engine.GPSIMD, QueueKind.COLLECTIVE)
    build.collective(queue, Collective(kind, byte_count, group))
    results = simulate_cores([build.finish()] * ranks, device)
    seconds = float(results[0].dma_end_ps[0] - results[0].dma_start_ps[0]) * 1e-12
    passed_on = 0 if kind == CollectiveKind.BARRIER else byte_count * bus_factor(kind, ranks)
    assert passed_on / seconds <= hardware.links(device).bus_bandwidth(group)


@pytest.mark.parametrize("target", TARGETS)
def test_long_streams_of_matmuls_come_close_to_the_sustained_peak(target):
    core = hardware.get(target)
    program = matmuls(core, DType.BF16, 512, 2000)
    seconds = simulate(program, core).duration_ps * 1e-12
    sustained = core.peak_tensor_flops * core.throttle_busy / core.throttle_steps
    assert 0.97 < instruction_counters(program, core).raw_flops.sum() / seconds / sustained < 1.01


# Sustained bf16 8192^3: trn1 78.6 TFLOPS, inf2 56.9 (pantheonneuron, medians of hosts).
@pytest.mark.parametrize(("target", "teraflops"), [("trn1", 78.6), ("inf2", 56.85)])
def test_sustained_matmul_rate_is_within_5_percent_of_the_measured(target, teraflops):
    core = hardware.get(target)
    program = matmuls(core, DType.BF16, 512, 5000)
    seconds = simulate(program, core).duration_ps * 1e-12
    rate = instruction_counters(program, core).raw_flops.sum() / seconds / 1e12
    assert rate == pytest.approx(teraflops, rel=0.05)


def test_trn2_starts_at_half_rate_and_ramps_up_after_a_busy_window():
    core = hardware.get("trn2")
    result = simulate(matmuls(core, DType.BF16, 512, 100), core)
    gaps = np.diff(result.start_ps)
    assert gaps[0] == pytest.approx(2 * gaps[-1], rel=0.01)
    assert result.throttle["k"].tolist() == [4, 8]
    assert result.throttle["duration_ps"].sum() == result.duration_ps
    assert result.throttle["start_ps"][1] == round(core.throttle_window_ns * 1000)


def test_more_hbm_bandwidth_never_makes_a_program_slower():
    program = random_builder(5, 80, dma_share=0.9).finish()
    core = hardware.get("trn2")
    durations = [
        simulate(program, core.replace(hbm_bandwidth=factor * core.hbm_bandwidth)).duration_ps
        for factor in (0.1, 0.5, 1.0)
    ]
    assert durations == sorted(durations, reverse=True)
