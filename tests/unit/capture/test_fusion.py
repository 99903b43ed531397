"""Which operations that wait together are compiled together."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from neuron_tools import hardware
from neuron_tools.capture import fusion
from neuron_tools.capture.fusion import ALONE, EagerFusion, first_of, fused_name
from neuron_tools.capture.options import DEFAULT_EAGER_FUSION, CaptureOptions, eager_fusion_of
from neuron_tools.compiler.compile import compile_module
from neuron_tools.device.native import BEGINS_FUSION, CANNOT_FUSE
from neuron_tools.errors import UsageError
from neuron_tools.frontends.torch_eager.fused import WaitingOperation, result_of
from neuron_tools.frontends.torch_eager.operation import lower_operation
from neuron_tools.records.executable import Executable
from neuron_tools.simulator.simulation import simulate

CORE = hardware.get("trn2")
SIZES = [256, 256]
TENSOR = ("tensor", "float32", tuple(SIZES), (256, 1), 0, True)
SCALE = ("aten::mul.Tensor", (TENSOR, ("number_tensor", "float32")))
SHIFT = ("aten::add.Tensor", (TENSOR, ("number_tensor", "float32"), 1))
PRODUCT = ("aten::mm", (TENSOR, (*TENSOR[:4], 1, True)))


class Store:
    """Compiles as the capture's store does, and counts."""

    def __init__(self, launch_overhead_ns: int = 8_700) -> None:
        self.made: list[str] = []
        self.fusion = EagerFusion(self._make, launch_overhead_ns)

    def operation(self, name: str, arguments: tuple[Any, ...]) -> Executable:
        """An operation alone, made known."""
        executable = self._make(lambda: lower_operation(name, arguments), name)
        self.fusion.add(name, arguments, executable)
        return executable

    def _make(self, module_factory: Any, name: str) -> Executable:
        program = compile_module(module_factory(), CORE)
        self.made.append(name)
        return Executable(len(self.made), name, "eager", program, simulate(program, CORE))


def result(buffer: int, needed: bool, sizes: list[int] = SIZES) -> Any:
    return (buffer, 0, "float32", sizes, [256, 1], needed)


def chain(store: Store, needed: bool = False) -> list[tuple[int, Any, Any]]:
    """Scale, then shift what came of it."""
    scale, shift = store.operation(*SCALE), store.operation(*SHIFT)
    return [
        (scale.number, [(0, 0), (-1, 0)], [result(1, needed)]),
        (shift.number, [(1, 0), (-1, 0)], [result(2, True)]),
    ]


def test_a_chain_is_one_execution_and_faster_than_its_parts() -> None:
    store = Store()
    number, duration_ns, flags, count = store.fusion.cost_of(chain(store))
    assert (number, flags, count) == (3, 0, 2)
    alone = simulate(compile_module(lower_operation(*SCALE), CORE), CORE).duration_ps / 1000
    assert alone < duration_ns < 2 * alone
    assert store.made[-1] == "fused: mul + add"


def test_what_is_needed_is_another_program_and_what_is_known_is_not_compiled_again() -> None:
    store = Store()
    waiting = chain(store)
    first = store.fusion.cost_of(waiting)
    assert store.fusion.cost_of(waiting) == first
    kept = store.fusion.cost_of([(waiting[0][0], waiting[0][1], [result(1, True)]), waiting[1]])
    assert len(store.made) == 4
    assert kept[1] > first[1]


def test_operations_that_are_faster_alone_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    waiting = chain(store)
    monkeypatch.setattr(EagerFusion, "_duration_alone_ns", lambda self, waiting: 0)
    assert store.fusion.cost_of(waiting) == ALONE


def test_the_first_operations_that_fit_run_together() -> None:
    store = Store()
    waiting = chain(store)
    part = (waiting[1][0], [(2, 8), (-1, 0)], [result(3, True)])  # reads beyond what was written
    assert store.fusion.cost_of([*waiting, part])[3] == 2
    assert store.fusion.cost_of([(99, [], []), *waiting]) == ALONE


def test_no_more_programs_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "MOST_PROGRAMS", 1)
    store = Store()
    waiting = chain(store)
    known = store.fusion.cost_of(waiting)
    assert store.fusion.cost_of([waiting[0], (waiting[0][0], [(1, 0), (-1, 0)], [result(2, True)])]) == ALONE
    assert store.fusion.cost_of(waiting) == known != ALONE


def test_what_does_not_compile_stays_alone_also_when_it_is_asked_for_again() -> None:
    store = Store()
    waiting = chain(store)
    tried: list[str] = []
    store.fusion._make = lambda _, name: tried.append(name)
    three = [*waiting, (waiting[0][0], [(2, 0), (-1, 0)], [result(3, True)])]
    assert [store.fusion.cost_of(three) for _ in range(2)] == [ALONE, ALONE]
    assert tried == ["fused: mul + add + mul"]


def test_products_begin_and_large_ones_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    product, scale = store.operation(*PRODUCT), store.operation(*SCALE)
    assert store.fusion.flags(PRODUCT[0], product.program) == BEGINS_FUSION
    assert store.fusion.flags(SCALE[0], scale.program) == 0
    monkeypatch.setattr(fusion, "MOST_INSTRUCTIONS", 1)
    assert store.fusion.flags(SCALE[0], scale.program) == CANNOT_FUSE


def test_a_prefix_keeps_what_the_rest_reads() -> None:
    def operation(reads: int, makes: int) -> WaitingOperation:
        made = result_of(makes, 0, "float32", SIZES, [256, 1], False)
        return WaitingOperation("aten::relu", (), ((reads, 0),), (made,))

    operations = [operation(0, 1), operation(1, 2), operation(2, 3)]
    kept = first_of(operations, 2, used_later=frozenset({1}))
    assert [each.results[0].needed for each in kept] == [True, True]
    assert [each.results[0].needed for each in first_of(operations, 3)] == [False] * 3


def test_a_name_tells_the_operators() -> None:
    assert fused_name(["aten::mul.Tensor", "aten::add.Tensor", "aten::add.Scalar"]) == "fused: mul + add x2"


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({}, DEFAULT_EAGER_FUSION),
        ({"NEURON_TOOLS_EAGER_FUSION": "on"}, "on"),
        ({"TORCH_NEURONX_ENABLE_CONCATENATION": "0"}, "off"),
        ({"TORCH_NEURONX_ENABLE_CONCATENATION": "1"}, "auto"),
        ({"TORCH_NEURONX_ENABLE_CONCATENATION": "0", "NEURON_TOOLS_EAGER_FUSION": "auto"}, "auto"),
    ],
)
def test_the_environment_chooses(environment: dict[str, str], chosen: str) -> None:
    assert eager_fusion_of(environment) == chosen


def test_unknown_modes_are_refused(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="choose auto, on or off"):
        eager_fusion_of({"NEURON_TOOLS_EAGER_FUSION": "yes"})
    with pytest.raises(UsageError, match="choose auto, on or off"):
        CaptureOptions(tmp_path, eager_fusion="yes")


def test_results_of_strided_memory_are_read_as_they_lie() -> None:
    made = result_of(3, 8, "bfloat16", [4, 2], [1, 4], True)
    assert (made.region.offset, made.region.tensor.dtype) == (8, torch.bfloat16)
    assert made.region.tensor.stored_sizes == (2, 4)
