"""A training step that is captured once in a graph and replayed on other data."""

import json

import torch
from texts import ON_CPU

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
batch = torch.zeros(4, 32, device=device)
loss = torch.zeros((), device=device)


def step():
    optimizer.zero_grad(set_to_none=True)
    result = network(batch).square().mean()
    result.backward()
    optimizer.step()
    loss.copy_(result.detach())


replay = step
if not ON_CPU:  # which has no graphs
    graph = torch.accelerator.Graph()
    with torch.Stream(device=device), graph:
        step()
    replay = graph.replay
losses = []
for number in range(3):
    batch.copy_(torch.linspace(-1, 1 + number, batch.numel()).reshape(batch.shape))
    replay()
    losses.append(loss.item())
print(json.dumps({"device": loss.device.type, "values": losses}))
