"""Training on the device `xla`: a step is one execution; one that compiles each time is found first."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.advice.advise import advise
from tests.integration.capture.programs import Folder, breaches, rows

pytestmark = pytest.mark.slow

TRAIN = """
import torch
import torch_xla.core.xla_model as xm
from torch_xla.distributed.parallel_loader import MpDeviceLoader
device = xm.xla_device()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.ones(SIZE, 16) for number in range(5)]
for inputs in MpDeviceLoader(batches, device):
    optimizer.zero_grad()
    loss = model(inputs).square().sum()
    loss.backward()
    xm.optimizer_step(optimizer)
print(loss.item())
"""


def test_a_step_is_one_execution_with_lines(folder: Folder) -> None:
    folder.capture(TRAIN.replace("SIZE", "8"), "--target", "trn1", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    executions = "SELECT count(*), count(DISTINCT executable_idx) FROM ExecutionInfo"
    assert rows(profile, executions)[0][0] == 5
    ((lines, total),) = rows(
        profile, "SELECT count(*) FILTER (stack_frame_ids IS NOT NULL), count(*) FROM Instruction"
    )
    assert lines >= 0.99 * total


def test_a_step_that_compiles_each_time_is_found_first(folder: Folder) -> None:
    folder.capture(TRAIN.replace("SIZE", "8 + number"), "--target", "trn1", "--host-clock", "fixed")
    (first, *_) = advise(folder.profile())
    assert first.rule == "recompilation"
    assert first.title.startswith("The step at ")
    assert "torch.compile" not in first.change


CONVOLUTIONS = """torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))"""
PERCEPTRON = "torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512))"
TRANSFORMER = "torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)"
MODELS = {
    "transformer": (TRANSFORMER, (4, 64, 128)),
    "perceptron": (PERCEPTRON, (512, 512)),
    "convolutions": (CONVOLUTIONS, (8, 3, 32, 32)),
}
"""Model, shape of its batch."""
BOTH_WAYS = """
import sys, torch
torch.manual_seed(0)
model, batch = MODEL, torch.randn(BATCH)
if WAY == "xla":
    import torch_xla.core.xla_model as xm
    device, end_step, compiled = xm.xla_device(), xm.mark_step, lambda function: function
else:
    device, end_step, compiled = torch.device("neuron"), lambda: None, torch.compile
model, batch = model.to(device), batch.to(device)
if TRAINS:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = compiled(lambda: model(batch).square().mean())
    update = compiled(optimizer.step)
    for _ in range(4):
        optimizer.zero_grad()
        loss().backward()
        update()
        end_step()
else:
    torch.backends.mha.set_fastpath_enabled(False)
    infer = compiled(model.eval())
    with torch.no_grad():
        for _ in range(4):
            result = infer(batch)
            end_step()
"""


def _last_step_ns(folder: Folder, way: str, model: str, trains: bool, executions: int) -> int:
    """Device time of the last step, which has so many executions and takes what the one before it took."""
    expression, batch = MODELS[model]
    text = BOTH_WAYS.replace("MODEL", expression).replace("BATCH", str(batch))
    script = f"WAY, TRAINS = {way!r}, {trains}\n{text}"
    folder.capture(script, "--target", "trn1", "--host-clock", "fixed")
    query = (
        "SELECT end_ts - start_ts FROM SystemProfileEvents WHERE name = 'nc_exec_running' ORDER BY start_ts"
    )
    times = [ns for (ns,) in rows(folder.profile(), query)]
    assert times[-executions:] == times[-2 * executions : -executions]
    return sum(times[-executions:])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("trains", "executions", "least"), [(False, 1, 0.9), (True, 4, 0.6)])
def test_a_step_takes_what_it_takes_compiled_natively(
    folder: Folder,
    tmp_path_factory: pytest.TempPathFactory,
    model: str,
    trains: bool,
    executions: int,
    least: float,
) -> None:
    """Training is one graph that fuses across forward, backward and optimizer: it may take less."""
    xla_ns = _last_step_ns(folder, "xla", model, trains, 1)
    native = Folder(tmp_path_factory.mktemp("native"))
    native_ns = _last_step_ns(native, "native", model, trains, executions)
    assert least * native_ns <= xla_ns <= 1.1 * native_ns, (xla_ns, native_ns)
