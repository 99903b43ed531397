"""A compiled function meets another length in every step."""

# rule: recompilation
# case: WIDTH=128, FIRST=32, STEP=8
# case: WIDTH=256, FIRST=64, STEP=16
# case: WIDTH=64, FIRST=40, STEP=4
# case: WIDTH=512, FIRST=16, STEP=16
import torch

WIDTH = 128
FIRST = 32
STEP = 8
torch.manual_seed(0)
weights = (torch.randn(WIDTH, WIDTH) / WIDTH**0.5).to("neuron")


@torch.compile(dynamic=False)
def layer(x):
    return torch.tanh(x @ weights).sum(dim=0)


rows = [torch.randn(FIRST + number * STEP, WIDTH) for number in range(6)]
# mended: rows = [torch.randn(FIRST + number * STEP, WIDTH)[:FIRST].contiguous() for number in range(6)]
for x in rows:
    y = layer(x.to("neuron"))  # fault
