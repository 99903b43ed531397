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
layers = [layer for _ in range(8) for layer in (torch.nn.Linear(512, 512), torch.nn.GELU())]
model = torch.nn.Sequential(*layers).eval().requires_grad_(False)
features = torch.randn(128, 512)
options = ["--neuroncore-pipeline-cores", "4"]
traced = torch.neuron.trace(model, features, compiler_args=options)
def client():
    for _ in range(5):
        assert torch.equal(traced(features), model(features))
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
    assert [core for core, _, _ in found] == [0, 1, 2, 3] * 5
    assert all(earlier[2] <= later[1] for earlier, later in pairwise(found))


def test_requests_of_several_threads_are_on_several_cores_at_once(folder: Folder) -> None:
    found = executions(folder, clients=6)
    assert len(found) == 6 * 5 * 4
    busy = sum(end - start for _, start, end in found)
    whole = max(end for _, _, end in found) - min(start for _, start, _ in found)
    assert busy > 3 * whole
