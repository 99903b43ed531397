"""A loop that reads a value of the device after every layer: the device waits for the host each time."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).to("neuron", torch.bfloat16)
x = torch.randn(512, 512).to("neuron", torch.bfloat16)
total = torch.zeros(512, 512, dtype=torch.bfloat16).to("neuron")
sums = []
with torch.no_grad():
    for _ in range(20):
        for layer in model:
            total += layer(x)
            sums.append(total[0, 0].item())  # fault
            # mended: sums.append(total[0, 0])
torch.neuron.synchronize()
