"""A compiled function that gets another Python number in every step, and is traced anew for each."""

import torch


@torch.compile(dynamic=False)
def scaled(x, name):
    return x * len(name) + 1


torch.manual_seed(0)
torch._dynamo.config.recompile_limit = 64
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
for step in range(20):
    output = model(batch)
    loss = scaled(output, "x" * step).square().mean()  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
