"""A compiled bf16 network answers large batches."""

# case: WIDTH=512, HIDDEN=2048, ROWS=2048
# case: WIDTH=1024, HIDDEN=1024, ROWS=2048
# case: WIDTH=768, HIDDEN=1536, ROWS=2048
import torch
from torch import nn

WIDTH = 512
HIDDEN = 2048
ROWS = 2048
torch.manual_seed(0)
made = {"device": "neuron", "dtype": torch.bfloat16}
model = nn.Sequential(nn.Linear(WIDTH, HIDDEN, **made), nn.GELU(), nn.Linear(HIDDEN, WIDTH, **made))
run = torch.compile(model)
x = torch.randn(ROWS, WIDTH, **made)
with torch.no_grad():
    for _ in range(3):
        x = run(x)
