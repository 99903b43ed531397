"""Training on the device `xla`: a step is one execution, and takes what it takes compiled natively."""

from __future__ import annotations

import pytest

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
batches = [torch.ones(8, 16) for number in range(5)]
for inputs in MpDeviceLoader(batches, device):
    optimizer.zero_grad()
    loss = model(inputs).square().sum()
    loss.backward()
    xm.optimizer_step(optimizer)
print(loss.item())
"""


def test_a_step_is_one_execution_with_lines(folder: Folder) -> None:
    folder.capture(TRAIN, "--target", "trn1", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    executions = "SELECT count(*), count(DISTINCT executable_idx) FROM ExecutionInfo"
    assert rows(profile, executions)[0][0] == 5
    ((lines, total),) = rows(
        profile, "SELECT count(*) FILTER (stack_frame_ids IS NOT NULL), count(*) FROM Instruction"
    )
    assert lines >= 0.99 * total


CONVOLUTIONS = """torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))"""
PERCEPTRON = "torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512))"
WIDE = "torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024))"
TRANSFORMER = "torch.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)"
MODELS = {
    "transformer": (TRANSFORMER, (4, 64, 128)),
    "perceptron": (PERCEPTRON, (512, 512)),
    "wide perceptron": (WIDE, (64, 1024)),
    "convolutions": (CONVOLUTIONS, (8, 3, 32, 32)),
}
"""Model, shape of its batch."""
BOTH_WAYS = """
import torch
torch.manual_seed(0)
model, batch = MODEL, torch.randn(BATCH)
if WAY == "xla":
    import torch_xla.core.xla_model as xm
    device, end_step, compiled = xm.xla_device(), xm.mark_step, lambda function: function
else:
    device, end_step, compiled = torch.device("neuron"), lambda: None, torch.compile
model, batch = model.to(device), batch.to(device)
"""
INFERENCE = """
torch.backends.mha.set_fastpath_enabled(False)
infer = compiled(model.eval())
with torch.no_grad():
    for _ in range(4):
        result = infer(batch)
        end_step()
"""
TRAINING = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def step():
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

@compiled
def whole_step(parameters):
    def loss(values):
        return torch.func.functional_call(model, values, batch).square().mean()

    gradients = torch.func.grad(loss)(parameters)
    for name, parameter in parameters.items():
        parameter.sub_(gradients[name], alpha=0.01)

parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
for _ in range(4):
    if WAY == "xla":
        step()
    else:
        with torch.no_grad():
            whole_step(parameters)
    end_step()
"""


DEVICE_TIMES = (
    "SELECT end_ts - start_ts FROM SystemProfileEvents WHERE name = 'nc_exec_running' ORDER BY start_ts"
)


def _last_step_ns(folder: Folder, way: str, model: str, step: str) -> int:
    """Device time of the last step, which is one execution and takes what the one before it took."""
    expression, batch = MODELS[model]
    text = BOTH_WAYS.replace("MODEL", expression).replace("BATCH", str(batch))
    folder.capture(f"WAY = {way!r}\n{text}{step}", "--target", "trn1", "--host-clock", "fixed")
    *_, before, last = (ns for (ns,) in rows(folder.profile(), DEVICE_TIMES))
    assert before == last
    return int(last)


TRAINED = ("transformer", "perceptron", "wide perceptron")
"""Without running statistics, which `torch.func.grad` lets nobody write."""


@pytest.mark.parametrize(
    ("model", "step"), [*((model, INFERENCE) for model in MODELS), *((model, TRAINING) for model in TRAINED)]
)
def test_a_step_takes_what_it_takes_compiled_natively_as_one_function(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory, model: str, step: str
) -> None:
    xla_ns = _last_step_ns(folder, "xla", model, step)
    native_ns = _last_step_ns(Folder(tmp_path_factory.mktemp("native")), "native", model, step)
    assert 0.9 * native_ns <= xla_ns <= 1.1 * native_ns, (xla_ns, native_ns)


AS_WRITTEN = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
run = compiled(model)
for _ in range(3):
    optimizer.zero_grad()
    run(batch).square().mean().backward()
    optimizer.step()
    end_step()
"""
BERT_LAYER = "torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)"


def _last_steps_executions_ns(folder: Folder, way: str) -> list[int]:
    """Device times of the executions of the last step; its first one is the model's forward pass."""
    text = BOTH_WAYS.replace("MODEL", BERT_LAYER).replace("BATCH", "(8, 128, 768)")
    program = f"WAY = {way!r}\n{text}{AS_WRITTEN}"
    folder.capture(program, "--target", "trn1", "--host-clock", "fixed", "--eager-fusion", "auto")
    times = [int(ns) for (ns,) in rows(folder.profile(), DEVICE_TIMES)]
    first = len(times) - 1 if way == "xla" else max(i for i, ns in enumerate(times) if ns == times[0])
    return times[first:]


def test_a_step_as_users_write_it_takes_what_it_takes_natively_with_adaptive_eager_execution(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    xla_ns = sum(_last_steps_executions_ns(folder, "xla"))
    native = _last_steps_executions_ns(Folder(tmp_path_factory.mktemp("native")), "native")
    assert len(native) > 2  # forward, backward, optimizer
    assert 0.9 * sum(native) <= xla_ns <= 1.1 * sum(native), (xla_ns, native)
