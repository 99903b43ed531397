"""Bandwidths on the core follow from lanes and clocks."""

from __future__ import annotations

import pytest

from neuron_tools import hardware


def test_trn2_by_hand():
    core = hardware.get("trn2")
    tensor, vector, scalar, gpsimd = (
        128 * clock * 1e9
        for clock in (
            core.tensor_clock_ghz,
            core.vector_clock_ghz,
            core.scalar_clock_ghz,
            core.gpsimd_clock_ghz,
        )
    )
    assert hardware.psum_bandwidth(core) == pytest.approx(4 * tensor + 8 * (vector + scalar))
    fast = 2 * 8 * vector  # four bf16 or two fp32 elements a lane and cycle, in and out
    assert hardware.sbuf_bandwidth(core) == pytest.approx(
        2 * tensor + fast + 8 * (scalar + gpsimd) + core.dma_bandwidth
    )


@pytest.mark.parametrize("target", hardware.targets())
def test_memories_on_the_core_are_faster_than_hbm(target):
    core = hardware.get(target)
    assert hardware.sbuf_bandwidth(core) > hardware.psum_bandwidth(core) > 2 * core.hbm_bandwidth
