"""CUPTI's counters of each kernel stand with the operator that launched it."""

from __future__ import annotations

from neuron_profile.analysis.traces.counters import CountedOperator, OperatorCounter, find_counters
from tests.unit.neuron_profile.analysis.traces.kineto_events import call, document, kernel, operator
from tests.unit.profile.importers.importing import imported

FMA, ADD = (f"smsp__sass_thread_inst_executed_op_f{kind}_pred_on.sum" for kind in ("fma", "add"))
RATE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def counted(place, **values):
    """The n-th range; all last equally long, after one another, whenever their kernels ran."""
    event = kernel("kernel", 1000 + 121 * place, 121, 0, "cuda_profiler_range")
    return {**event, "args": values}


EVENTS = [
    operator("aten::linear", 0, 40), operator("aten::addmm", 5, 30), call("cudaLaunchKernel", 10, 1),
    call("cudaMemsetAsync", 14, 2), call("cudaLaunchKernelExC", 20, 3), operator("aten::relu", 50, 20),
    call("cudaLaunchKernel", 55, 4),
]  # fmt: skip
RANGES = [
    counted(0, **{FMA: 100, ADD: 5, RATE: 50.5}),
    counted(1, **{FMA: 10, ADD: 0, RATE: 20.5}),
    counted(2, **{FMA: 0, ADD: 7, RATE: 5.0}),
]


def test_counters_are_summed_by_operator(tmp_path):
    with imported(tmp_path, document(*EVENTS, *RANGES)) as profile:
        found = find_counters(profile)
    assert found.unknown == 0
    assert found.operators == (
        CountedOperator("aten::addmm", "aten::linear", 2, 2 * 110 + 5),
        CountedOperator("aten::relu", "aten::relu", 1, 7),
    )
    of_addmm = [row for row in found.counters if row.operator == "aten::addmm"]
    assert of_addmm == [
        OperatorCounter("aten::addmm", RATE, 2, 71.0, 35.5),
        OperatorCounter("aten::addmm", ADD, 2, 5.0, 2.5),
        OperatorCounter("aten::addmm", FMA, 2, 110.0, 55.0),
    ]


def test_launches_of_the_driver_count_where_the_runtime_has_too_few(tmp_path):
    driver = [operator("triton_poi_fused_0", 80, 20), call("cuLaunchKernel", 85, 5)]
    with imported(tmp_path, document(*EVENTS, *driver, *RANGES, counted(3, **{FMA: 1}))) as profile:
        found = find_counters(profile)
    assert {row.operator: row.kernels for row in found.operators} == {
        "aten::addmm": 2, "aten::relu": 1, "triton_poi_fused_0": 1,
    }  # fmt: skip


def test_ranges_that_do_not_go_with_the_launches_belong_to_nobody(tmp_path):
    with imported(tmp_path, document(*EVENTS, *RANGES[:2])) as profile:
        found = find_counters(profile)
    assert found.unknown == 2
    assert found.operators == (CountedOperator("", "", 2, 225),)


def test_a_trace_without_ranges_has_no_counters(tmp_path):
    with imported(tmp_path, document(*EVENTS, kernel("gemm", 60, 5, 4))) as profile:
        assert find_counters(profile) is None
