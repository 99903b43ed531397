"""Batches of token ids of like lengths, each padded to the end of its bucket, go through a compiled model."""

# case: WIDTH=1024, ROWS=8
# case: WIDTH=1024, ROWS=16
import torch
from torch import nn

WIDTH = 1024
ROWS = 8
LENGTH = 512
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
table = nn.Embedding(1000, WIDTH).bfloat16().to("neuron")
compiled = torch.compile(model.bfloat16().to("neuron"))
batches = torch.zeros(4, ROWS, LENGTH, dtype=torch.long)
for batch in batches:
    for row in range(ROWS):
        needed = LENGTH - 2 * row
        batch[row, :needed] = torch.randint(1, 1000, (needed,))
with torch.no_grad():
    states = [table(batch.to("neuron")) for batch in batches]
    for state in states:
        result = compiled(state)
