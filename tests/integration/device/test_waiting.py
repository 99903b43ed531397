"""Eager operations that wait for the device run as one execution, until somebody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuron_tools.device import native
from neuron_tools.records.capture_log import RecordKind
from tests.integration.device.recording import Log, record

LONG_NS = 1_000_000  # the device is busy while the host issues some hundred operations of 10,000 ns


def executions(log: Log) -> list[tuple[str, ...]]:
    """The names of the operations of each execution, in order."""
    found: list[tuple[str, ...]] = []
    members: list[str] = []
    for row in log.records:
        name = log.names.get(int(row["name"]), "").removeprefix("aten::").split(".")[0]
        if row["kind"] == RecordKind.FUSED_OPERATION:
            members.append(name)
        elif row["kind"] == RecordKind.FUSED:
            assert len(members) == row["address"]
            found.append(tuple(members))
            members = []
        elif row["kind"] == RecordKind.OPERATION:
            found.append((name,))
    assert not members
    return found


def chain(between: Callable[[torch.Tensor], object] = lambda tensor: None) -> Callable[[], torch.Tensor]:
    """A program: one operation that the device is busy with, three that wait, something, and two more."""

    def program() -> torch.Tensor:
        x = torch.ones(4, device="neuron")
        y = (x + 1).mul(2).relu()
        between(y)
        return y.sub(3).abs()

    return program


def test_operations_that_wait_while_the_device_is_busy_are_one_execution(tmp_path: Path) -> None:
    log = record(chain(), tmp_path / "log", LONG_NS, fusion="auto")
    assert executions(log) == [("fill_",), ("add", "mul", "relu", "sub", "abs")]
    fused = log.of(RecordKind.FUSED)[0]
    members = log.of(RecordKind.FUSED_OPERATION)
    assert set(members["device_start_ns"]) == {fused["device_start_ns"]}
    assert (np.diff(members["host_start_ns"]) > 0).all()
    assert len({log.line(member) for member in members}) == 2
    assert fused["executable"] == 1001
    assert fused["device_end_ns"] - fused["device_start_ns"] == LONG_NS
    assert fused["device_start_ns"] >= log.of(RecordKind.OPERATION)[0]["device_end_ns"]


def test_an_operation_that_the_device_is_free_for_does_not_wait(tmp_path: Path) -> None:
    log = record(chain(), tmp_path / "log", 1_000, fusion="auto")
    assert [len(each) for each in executions(log)] == [1] * 6
    starts = log.of(RecordKind.OPERATION)
    assert (starts["device_start_ns"] == starts["host_end_ns"]).all()


def test_lazy_operations_wait_although_the_device_is_free(tmp_path: Path) -> None:
    log = record(chain(), tmp_path / "log", 1_000, fusion="on")
    assert executions(log) == [("fill_", "add", "mul", "relu", "sub", "abs")]
    assert (
        log.of(RecordKind.FUSED)[0]["device_start_ns"]
        >= log.of(RecordKind.FUSED_OPERATION)[-1]["host_end_ns"]
    )


def event(_: torch.Tensor) -> None:
    torch.neuron.Event().record()


def other_stream(_: torch.Tensor) -> None:
    torch.neuron.current_stream().wait_stream(torch.neuron.Stream())


def user_range(_: torch.Tensor) -> None:
    native.mark_boundary()


LOOKS = {
    "item": lambda y: y[0].item(),
    "print": lambda y: str(y),
    "copy to the host": lambda y: y.cpu(),
    "asynchronous copy": lambda y: y.to("cpu", non_blocking=True),
    "copy to the device": lambda y: torch.ones(2).to("neuron"),
    "synchronize": lambda y: torch.neuron.synchronize(),
    "event": event,
    "stream": other_stream,
    "truth": lambda y: bool(y.sum() > 0),
    "shape from values": lambda y: y.nonzero(),
    "compiled graph": lambda y: native.run_graph(77, 10, native.intern_name("graph")),
    "collective": lambda y: native.issue_collective(0, True),
    "range": user_range,
}


@pytest.mark.parametrize("fusion", ["auto", "on"])
@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_fused_over_a_look(look: str, fusion: native.EagerFusion, tmp_path: Path) -> None:
    log = record(chain(LOOKS[look]), tmp_path / "log", LONG_NS, fusion=fusion)
    whole = [each for each in executions(log) if "relu" in each]
    assert len(whole) == 1
    assert "sub" not in whole[0]
    assert "add" in whole[0]
    assert sum(executions(log), ())[-2:] == ("sub", "abs")


@pytest.mark.parametrize("fusion", ["auto", "on"])
def test_deterministic_algorithms_switch_fusion_off(fusion: native.EagerFusion, tmp_path: Path) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        log = record(chain(), tmp_path / "log", LONG_NS, fusion=fusion)
    finally:
        torch.use_deterministic_algorithms(False)
    assert [len(each) for each in executions(log)] == [1] * len(executions(log))


def test_an_operation_that_begins_joins_none_before_it_and_takes_others(tmp_path: Path) -> None:
    def cost(name: str, arguments: object) -> tuple[int, int, int]:
        flags = {"aten::mul.Tensor": native.BEGINS_FUSION, "aten::sub.Tensor": native.CANNOT_FUSE}
        return 1 + len(name), LONG_NS, flags.get(name, 0)

    log = record(chain(), tmp_path / "log", LONG_NS, cost=cost, fusion="on")
    assert executions(log) == [("fill_", "add"), ("mul", "relu"), ("sub",), ("abs",)]


def test_a_group_has_at_most_sixteen_operations(tmp_path: Path) -> None:
    def program() -> None:
        x = torch.ones(4, device="neuron")
        for _ in range(40):
            x = x + 1

    log = record(program, tmp_path / "log", LONG_NS, fusion="on")
    assert [len(each) for each in executions(log)] == [16, 16, 9]


def test_what_nobody_can_read_any_more_is_not_needed(tmp_path: Path) -> None:
    kept = []

    def program() -> None:
        x = torch.ones(4, device="neuron")
        kept.append(x + 1)
        y = kept[0] * 2
        y = y.relu()
        y.add_(1)
        kept.append(y.abs())

    log = record(program, tmp_path / "log", LONG_NS, fusion="on")
    (waiting,) = log.fusions
    needed = [[result[-1] for result in results] for _, _, results in waiting]
    assert needed == [[False], [True], [False], [False], [False], [True]]  # fill_, add, mul, relu, add_, abs
    buffers = [[result[0] for result in results] for _, _, results in waiting]
    assert buffers[3] == buffers[4] != buffers[5]


def test_the_same_operations_over_other_memory_are_asked_for_once(tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(5):
            torch.ones(4, device="neuron").mul(2).add(1).cpu()

    log = record(program, tmp_path / "log", LONG_NS, fusion="on")
    assert len(log.fusions) == 1
    assert len(log.of(RecordKind.FUSED)) == 5


def test_threads_that_issue_at_once_lose_nothing(tmp_path: Path) -> None:
    def program() -> None:
        x = torch.ones(8, device="neuron")

        def issue() -> None:
            y = x
            for number in range(200):
                y = y + 1
                if number % 7 == 0:
                    y.cpu()

        threads = [threading.Thread(target=issue) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    log = record(program, tmp_path / "log", 15_000, fusion="auto")
    assert sum(each.count("add") for each in executions(log)) == 800
    placed = log.records[np.isin(log.records["kind"], [RecordKind.OPERATION, RecordKind.FUSED])]
    assert (placed["device_start_ns"][1:] >= placed["device_end_ns"][:-1]).all()


@pytest.mark.parametrize("fusion", ["off", "auto", "on"])
def test_values_are_the_same_to_the_bit(fusion: native.EagerFusion, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight, inputs = torch.randn(16, 16), torch.randn(8, 16)
    results = []

    def program() -> None:
        w = weight.to("neuron").requires_grad_()
        loss = torch.softmax(inputs.to("neuron") @ w, -1).mul(3).tanh().square().sum()
        loss.backward()
        results.extend([loss.detach().cpu(), w.grad.cpu()])

    record(program, tmp_path / "log", LONG_NS, fusion=fusion)
    w = weight.clone().requires_grad_()
    loss = torch.softmax(inputs @ w, -1).mul(3).tanh().square().sum()
    loss.backward()
    assert torch.equal(results[0], loss.detach())
    assert torch.equal(results[1], w.grad)
