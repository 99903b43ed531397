"""Sequences of a batch go through a model one by one, and each is written into its row of the result."""

# rule: tiny_batches
# case: BATCH=16
import torch
from torch import nn

BATCH = 16
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).bfloat16().to("neuron")
x = torch.randn(BATCH, 512).bfloat16().to("neuron")
result = torch.empty(BATCH, 512, dtype=torch.bfloat16, device="neuron")
with torch.no_grad():
    for number in range(BATCH):
        result[number] = model(x[number : number + 1])[0]  # fault
        # mended: pass
    # added: result = model(x)
