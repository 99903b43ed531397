"""A training step that is compiled natively takes what it takes on the device `xla`, within 10 %.

It does where the optimizer is a small part: natively that is an executable of its own, and `xla` runs it
beside the backward pass (docs/pytorch-ways.md).
"""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import Folder, rows

STEPS = """
import torch
from torch import nn
torch.manual_seed(0)
model, batch = MODEL, torch.randn(BATCH)
if WAY == "xla":
    import torch_xla.core.xla_model as xm
    device, end_step, compiled = xm.xla_device(), xm.mark_step, lambda function: function
else:
    device, end_step, compiled = torch.device("neuron"), lambda: None, torch.compile
model, batch = model.to(device), batch.to(device)
optimizer = OPTIMIZER

@compiled
def step():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    if IS_CLIPPED:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

for _ in range(4):
    step()
    end_step()
"""
CONVOLUTIONS = """nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))"""
TRANSFORMER = """nn.TransformerEncoder(
    nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False)"""
SGD = "torch.optim.SGD(model.parameters(), lr=0.01)"
ADAMW = "torch.optim.AdamW(model.parameters())"
EXECUTIONS = (
    "SELECT neff_name, execution_end_ts - execution_start_ts FROM ExecutionInfo ORDER BY execution_start_ts"
)


def _last_steps_ns(folder: Folder, program: str) -> tuple[list[int], list[int]]:
    """Device times of the executions of the last two steps; natively each begins with a forward pass."""
    folder.capture(program, "--target", "trn1", "--host-clock", "fixed")
    names, times = zip(*rows(folder.profile(), EXECUTIONS))
    starts = [at for at, name in enumerate(names) if name.endswith("_forward")] or list(range(len(names)))
    before, last = starts[-2:]
    return list(times[before:last]), list(times[last:])


def _both_ns(folder: Folder, other: Folder, options: dict[str, object]) -> tuple[list[int], list[int]]:
    """Of the last step on `xla`, and natively: each takes what the step before took."""
    program = STEPS
    for name, value in options.items():
        program = program.replace(name, str(value))
    steps = []
    for way, place in (("xla", folder), ("native", other)):
        before, last = _last_steps_ns(place, f"WAY = {way!r}\n{program}")
        assert before == last
        steps.append(last)
    return steps[0], steps[1]


@pytest.mark.parametrize(
    ("model", "batch", "optimizer", "is_clipped"),
    [
        pytest.param(CONVOLUTIONS, (8, 3, 32, 32), SGD, False, id="convolutions"),
        pytest.param(TRANSFORMER, (8, 128, 256), ADAMW, True, marks=pytest.mark.slow, id="transformer"),
    ],
)
def test_a_compiled_step_takes_what_it_takes_on_xla(
    folder: Folder,
    tmp_path_factory: pytest.TempPathFactory,
    model: str,
    batch: tuple[int, ...],
    optimizer: str,
    is_clipped: bool,
) -> None:
    options = {
        "MODEL": model, "BATCH": batch, "OPTIMIZER": optimizer,
        "IS_CLIPPED": is_clipped,
    }  # fmt: skip
    xla, native = _both_ns(folder, Folder(tmp_path_factory.mktemp("native")), options)
    assert len(xla) == 1
    assert len(native) > 2  # forward, backward, optimizer
    assert 0.9 * sum(native) <= sum(xla) <= 1.1 * sum(native), (xla, native)
