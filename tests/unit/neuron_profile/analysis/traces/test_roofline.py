"""Work of operators from their shapes, who launched a kernel, and the roofline of the device of a trace."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from neuron_profile.analysis.comparison.cost import cost_of
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.traces.attribution import attribute
from neuron_profile.analysis.traces.roofline import make_trace_roofline
from neuron_profile.analysis.traces.work import operator_work
from neuron_profile.reports.difference_text import as_markdown
from neuron_tools.hardware.accelerators import accelerators, find_accelerator
from neuron_tools.profile.reader import open_profile
from tests.fixtures.gpu_trace import GEMM, H100, PID, TID, K, M, N, gpu_document, host, launched
from tests.unit.profile.importers.importing import imported

BF16 = "c10::BFloat16"


def arguments(*shapes, kind=BF16, plain=()):
    return json.dumps({"Input Dims": shapes, "Input type": [kind] * len(shapes), "Concrete Inputs": plain})


@pytest.mark.parametrize(
    ("name", "given", "flops", "byte_count"),
    [
        ("aten::mm", arguments([4, 8], [8, 16]), 2 * 4 * 8 * 16, 2 * (32 + 128 + 64)),
        ("aten::addmm", arguments([16], [4, 8], [8, 16]), 2 * 4 * 8 * 16, 2 * (16 + 32 + 128 + 64)),
        ("aten::bmm", arguments([3, 4, 8], [3, 8, 16]), 2 * 3 * 4 * 8 * 16, 2 * 3 * (32 + 128 + 64)),
        ("aten::relu", arguments([4, 8], kind="float"), 0, 4 * (32 + 32)),
        (
            "aten::cudnn_convolution",
            arguments([2, 3, 8, 8], [5, 3, 3, 3], plain=["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"]),
            2 * 2 * 5 * 4 * 4 * 27, 2 * (384 + 135 + 160),
        ),
        (
            "aten::_flash_attention_forward",
            arguments(*[[2, 64, 4, 16]] * 3, plain=["", "", "", "", "", "64", "64", "0.", "True"]),
            2 * 2 * 2 * 4 * 64 * 64 * 16 // 2, 2 * 4 * 2 * 64 * 4 * 16,
        ),
    ],
)  # fmt: skip
def test_work_follows_from_shapes(name, given, flops, byte_count):
    work = operator_work(name, given)
    assert (work.flops, work.byte_count) == (flops, byte_count)


def test_without_shapes_work_is_not_known():
    assert operator_work("aten::mm", None) is None
    assert operator_work("aten::mm", '{"External id": 3}') is None
    assert operator_work("aten::mm", arguments([4])).flops == 0


def test_devices_are_found_by_name_and_every_figure_has_a_source():
    names = {
        "NVIDIA H100 80GB HBM3": 3.35e12, "NVIDIA H100 PCIe": 2.0e12, "NVIDIA H200": 4.8e12,
        "NVIDIA A100-SXM4-40GB": 1.555e12, "NVIDIA A100-SXM4-80GB": 2.039e12, "AMD Instinct MI300X": 5.3e12,
        "NVIDIA B200": 7.7e12, "TPU v4": 1.2e12, "TPU v5 lite": 819e9, "TPU v5p": 2.765e12,
        "TPU v6 lite": 1.638e12,
    }  # fmt: skip
    found = {name: find_accelerator(name).bytes_per_second for name in names}
    assert found == names
    assert find_accelerator("CPU") is None
    assert all(one.source.startswith("https://") and one.flops for one in accelerators())


def test_an_operator_stands_under_the_roof_of_its_device(tmp_path):
    with imported(tmp_path, gpu_document(steps=2)) as profile:
        roofline = make_trace_roofline(profile)
        modules = make_trace_roofline(profile, "module")

    product, relu = roofline.points
    assert roofline.device == "NVIDIA H100 SXM"
    assert (product.name, product.flops, product.charged_ns) == ("aten::mm", 2 * 2 * M * K * N, 200_000)
    assert (product.bound, relu.bound) == ("compute", "HBM")
    assert product.of_bound == pytest.approx(2 * M * K * N / 989.5e12 / 100e-6)
    assert [point.name for point in modules.points] == ["Block_0"]


def test_without_known_peaks_there_is_no_roofline(tmp_path):
    document = gpu_document()
    document["deviceProperties"] = [{**H100, "name": "Unheard-of 9000"}]
    with imported(tmp_path, document) as profile:
        assert make_trace_roofline(profile) is None


def test_backward_work_belongs_to_the_module_of_its_forward_operator(tmp_path):
    document = gpu_document(steps=1)
    forward = next(event for event in document["traceEvents"] if event["name"] == "aten::mm")
    forward["args"] |= {"Sequence number": 5, "Fwd thread id": 0}
    start = forward["ts"] + 300
    given = {"Sequence number": 5, "Fwd thread id": 1, "External id": 77}
    backward = [
        host("MmBackward0", "cpu_op", start, 20, given),
        *launched(start + 2, 3, 77, GEMM, start + 6, 9),
    ]
    for event in backward:
        if (event["pid"], event["tid"]) == (PID, TID):
            event["tid"] = 9002
    document["traceEvents"] += backward
    with imported(tmp_path, document) as profile:
        found = attribute(profile)

    rows = list(zip(found.operators, found.modules, found.is_backward.tolist()))
    assert rows[0] == ("aten::mm", "Block_0", False)
    assert rows[-1] == ("MmBackward0", "Block_0", True)


def test_two_accelerators_are_compared_by_module_and_operator(tmp_path):
    faster = gpu_document(steps=2)
    for event in faster["traceEvents"]:
        if event["name"] == GEMM:
            event["dur"] = 60
    with imported(tmp_path, gpu_document(steps=2)):
        (tmp_path / "out.nprof").rename(tmp_path / "base.nprof")
    with imported(tmp_path, faster) as new, open_profile(tmp_path / "base.nprof") as base:
        difference = compare(base, new)

    (changed,) = [delta for delta in difference.deltas if delta.delta_ns]
    assert (changed.key.module, changed.key.operation) == ("Block_0", "aten::mm")
    assert (changed.base_ns, changed.new_ns) == (200_000, 120_000)
    assert difference.new_device_ns - difference.base_device_ns == -80_000


def test_prices_give_what_a_million_steps_cost(tmp_path):
    with imported(tmp_path, gpu_document(steps=3)):
        (tmp_path / "out.nprof").rename(tmp_path / "base.nprof")
    with imported(tmp_path, gpu_document(steps=3)) as new, open_profile(tmp_path / "base.nprof") as base:
        difference = compare(base, new)
    step_ns = difference.base_step_ns
    assert step_ns
    cost = cost_of(difference, 3.6, 1.8)
    assert (cost.base, cost.new) == (pytest.approx(step_ns / 1e6), pytest.approx(step_ns / 2e6))
    text = as_markdown(difference, 5, cost)
    assert f"- A million typical steps cost: {step_ns / 1e6:,.4g} -> " in text
    assert "(-50.0 %), at 3.6 and 1.8 an hour" in text
    without = replace(difference, base_step_ns=None)
    assert cost_of(without, 3.6, 1.8).base == pytest.approx(difference.base_total_ns / 1e6)
