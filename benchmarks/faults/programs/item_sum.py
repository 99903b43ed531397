"""A running total on the host takes a value of every step."""

# rule: host_synchronisation
# case: SIZE=512, STEPS=10
# case: SIZE=768, STEPS=12
# case: SIZE=1024, STEPS=6
# case: SIZE=1024, STEPS=14
# case: SIZE=1536, STEPS=5
import torch

SIZE = 512
STEPS = 8
torch.manual_seed(0)
layer = torch.nn.Linear(SIZE, SIZE).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
total = 0.0
# added: sums = []
with torch.no_grad():
    for _ in range(STEPS):
        x = torch.relu(layer(x))
        total += x.sum().item()  # fault
        # mended: sums.append(x.sum())
    # added: total = sum(torch.stack(sums).tolist())
