"""A loop that prints thousands of lines in every step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
for step in range(20):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    for line in range(3000):
        print("step", step, "line", line, flush=True)  # fault
