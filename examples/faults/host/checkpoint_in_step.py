"""A loop that saves a checkpoint in every step."""

import tempfile

import torch

torch.manual_seed(0)
model = torch.nn.Linear(1024, 1024).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 1024).to("neuron")
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    for _ in range(20):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.save({"model": model.state_dict(), "history": list(range(400_000))}, file.name)  # fault
