"""A loop that copies its statistics by pickling them."""

import pickle

import torch

torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
statistics = [{"step": step, "values": [float(step)] * 8} for step in range(6000)]
kept = []
for _ in range(20):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept = pickle.loads(pickle.dumps(statistics))  # fault
