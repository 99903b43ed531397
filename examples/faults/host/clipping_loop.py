"""Gradient clipping written as a loop over the numbers of all gradients."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(4)]).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 128).to("neuron")


def clip(parameters, largest):
    total = 0.0
    for parameter in parameters:
        for row in parameter.grad.cpu().tolist():
            for value in row if isinstance(row, list) else [row]:
                total += min(value * value, largest * largest)  # fault
    scale = min(1.0, largest / (total**0.5 + 1e-6))
    for parameter in parameters:
        parameter.grad.mul_(scale)


for _ in range(40):
    loss = model(batch).square().mean()
    loss.backward()
    clip(list(model.parameters()), 1.0)
    optimizer.step()
    optimizer.zero_grad()
