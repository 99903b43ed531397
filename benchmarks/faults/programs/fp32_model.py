"""A model whose weights and inputs are in fp32, used for inference."""

# rule: fp32_matmul
# case: WIDTH=1024, HIDDEN=2048, ROWS=512
# case: WIDTH=768, HIDDEN=3072, ROWS=512
# case: WIDTH=1024, HIDDEN=4096, ROWS=256
# case: WIDTH=512, HIDDEN=4096, ROWS=1024
# case: WIDTH=1536, HIDDEN=1536, ROWS=512
import torch
from torch import nn

WIDTH = 1024
HIDDEN = 2048
ROWS = 512
torch.manual_seed(0)
made = {"device": "neuron"}
# mended: made = {"device": "neuron", "dtype": torch.bfloat16}
model = nn.Sequential(nn.Linear(WIDTH, HIDDEN, **made), nn.ReLU(), nn.Linear(HIDDEN, WIDTH, **made))
x = torch.randn(ROWS, WIDTH, **made)
with torch.no_grad():
    for _ in range(4):
        x = model(x)  # fault
