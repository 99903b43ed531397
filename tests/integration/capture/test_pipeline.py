"""A model that four NeuronCores-v1 share out: a lane for each core, and requests that stream through them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.integration.capture.programs import Folder, breaches, rows

pytestmark = pytest.mark.slow

SERVE = """
import threading
import torch
import torch_neuron
torch.manual_seed(0)
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]
model = torch.nn.Sequential(*layers).eval().requires_grad_(False)
features = torch.randn(256, 2048)
expected = model(features)
options = ["--neuroncore-pipeline-cores", "4"]
traced = torch.neuron.trace(model, features, compiler_args=options)
def client():
    for _ in range(3):
        assert torch.equal(traced(features), expected)
threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
EXECUTIONS = "SELECT pcore_idx, execution_start_ts, execution_end_ts FROM ExecutionInfo ORDER BY 2"


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setenv("NEURON_RT_NUM_CORES", "4")


def executions(folder: Folder, clients: int) -> list[tuple[int, int, int]]:
    program = SERVE.replace("CLIENTS", str(clients))
    folder.capture(program, "--target", "inf1", "--host-clock", "fixed")
    assert breaches(folder.profile()) == []
    return rows(folder.profile(), EXECUTIONS)


def test_one_request_uses_one_core_after_the_other(folder: Folder) -> None:
    found = executions(folder, clients=1)
    assert [core for core, _, _ in found] == [0, 1, 2, 3] * 3
    assert all(earlier[2] <= later[1] for earlier, later in pairwise(found))


def test_requests_of_several_threads_are_on_several_cores_at_once(folder: Folder) -> None:
    found = executions(folder, clients=5)
    assert len(found) == 5 * 3 * 4
    assert max(sum(start <= at < end for _, start, end in found) for _, at, _ in found) >= 3
