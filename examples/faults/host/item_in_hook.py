"""A hook on every layer that reads a value of the device."""

import torch

MEANS = []


def watch(module, inputs, output):
    MEANS.append(output.mean().item())  # fault


torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).to("neuron", torch.bfloat16)
for layer in model:
    layer.register_forward_hook(watch)
batch = torch.randn(2048, 2048).to("neuron", torch.bfloat16)
with torch.no_grad():
    for _ in range(6):
        model(batch)
torch.neuron.synchronize()
