"""Every operator that whole training steps run has a native lowering."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from neuron_tools.frontends.torch_eager.operation import lower_operation
from tests.unit.frontends.signatures import SignatureRecorder


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu", batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens)))


class Convolutions(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 8, 5, 2, 2, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(8, 8, 3, padding=1, groups=2),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.AvgPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 20),
        )


class Recurrent(nn.Module):
    """The cells as the device has them: one fused operator per step."""

    def __init__(self):
        super().__init__()
        self.cell, self.gated, self.head = nn.LSTMCell(4, 8), nn.GRUCell(8, 8), nn.Linear(8, 20)

    def forward(self, sequence):
        state = hidden = None
        for step in sequence.unbind(1):
            state = self.cell(step, state)
            hidden = self.gated(state[0], hidden)
        return self.head(hidden)


READ_BY_THE_HOST = "aten::_local_scalar_dense"  # a copy, not a computation
MODELS = {
    "transformer": (Transformer, lambda: torch.randint(0, 20, (2, 6))),
    "convolutions": (Convolutions, lambda: torch.randn(2, 3, 16, 16)),
    "recurrent": (Recurrent, lambda: torch.randn(2, 3, 4)),
}
OPTIMIZERS = {
    "AdamW foreach": lambda parameters: torch.optim.AdamW(parameters, foreach=True),
    "Adam fused": lambda parameters: torch.optim.Adam(parameters, fused=True),
    "SGD": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01),
}


def signatures_of_a_step(model, inputs, make_optimizer):
    optimizer = make_optimizer(model.parameters())
    with SignatureRecorder() as recorder:
        outputs = model(inputs)
        targets = torch.zeros(outputs.shape[:-1], dtype=torch.int64)
        F.cross_entropy(outputs.flatten(0, -2), targets.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return recorder.signatures


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_left_unlowered(model, optimizer):
    make_model, make_inputs = MODELS[model]
    torch.manual_seed(0)
    signatures = signatures_of_a_step(make_model(), make_inputs(), OPTIMIZERS[optimizer])
    assert len(signatures) > 20
    unlowered = {
        name: warnings
        for (name, _), arguments in signatures.items()
        if name != READ_BY_THE_HOST and (warnings := lower_operation(name, arguments).warnings)
    }
    assert unlowered == {}
