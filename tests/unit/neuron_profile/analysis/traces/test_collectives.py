"""Collectives among kernels: kind, algorithm, size and bandwidth as far as the trace tells them."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.traces.collectives import communication_of, operation_name
from tests.fixtures.gpu_trace import REDUCED_ELEMENTS, gpu_document
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace
from tests.unit.profile.importers.importing import imported


def test_a_collective_has_its_size_and_its_bandwidth(tmp_path):
    with imported(tmp_path, gpu_document(steps=2)) as profile:
        found = communication_of(profile)

    (kind,) = found.kinds
    assert (kind.operation, kind.algorithm, kind.calls) == ("AllReduce", "RING LL", 2)
    assert (kind.input_bytes, kind.output_bytes) == (2 * REDUCED_ELEMENTS, 2 * REDUCED_ELEMENTS)
    assert kind.algorithm_bandwidth == pytest.approx(2 * REDUCED_ELEMENTS / 160e-6)
    assert kind.bus_bandwidth == pytest.approx(kind.algorithm_bandwidth * 2 * 7 / 8)
    assert (found.busy_ns, found.hidden_ns) == (320_000, 30_000)  # relu: 120-135 of 120-280


def test_without_sizes_bandwidths_are_not_known(tmp_path):
    with open_trace(tmp_path) as profile:
        (kind,) = communication_of(profile).kinds

    assert (kind.operation, kind.calls, kind.duration_ns) == ("AllReduce", 1, 110_000)
    assert (kind.input_bytes, kind.algorithm_bandwidth, kind.bus_bandwidth) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", "ReduceScatter"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "AllGather"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "SendRecv"),
        ("_allgather_base", "AllGather"),
        ("reduce_scatter_tensor", "ReduceScatter"),
        ("all-to-all.7", "AllToAll"),
        ("ncclUnknown", "ncclUnknown"),
    ],
)
def test_collectives_are_named_alike(text, operation):
    assert operation_name(text) == operation
