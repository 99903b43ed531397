"""A loop that collects garbage in every step, among very many objects."""

import gc

import torch

torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
cache = [[number] for number in range(400_000)]
for _ in range(15):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()  # fault
