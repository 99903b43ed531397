"""Dropout as a mask of random numbers that is compared, cast, multiplied and scaled."""

# rule: unfused_dropout
# case: ROWS=512, WIDTH=512
# case: ROWS=1024, WIDTH=1024
# case: ROWS=2048, WIDTH=512
# case: ROWS=256, WIDTH=1024
import torch

ROWS = 512
WIDTH = 512
RATE = 0.1
torch.manual_seed(0)
weights = (torch.randn(WIDTH, WIDTH) / WIDTH**0.5).bfloat16().to("neuron")
x = torch.randn(ROWS, WIDTH).bfloat16().to("neuron")
for _ in range(6):
    x = torch.relu(x @ weights)
    x = x * (torch.rand_like(x) > RATE).to(x.dtype) / (1 - RATE)  # fault
    # mended: x = torch.nn.functional.dropout(x, RATE)
