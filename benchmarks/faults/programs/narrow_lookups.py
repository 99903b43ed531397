"""Rows of a table that are always needed together are looked up one by one, a few bytes each."""

# rule: narrow_lookups
# case: WIDTH=16, TOGETHER=16, LOOKUPS=512
# case: WIDTH=32, TOGETHER=8, LOOKUPS=512
# case: WIDTH=16, TOGETHER=16, LOOKUPS=256
# case: WIDTH=64, TOGETHER=4, LOOKUPS=1024
import torch

WIDTH = 16
TOGETHER = 16
LOOKUPS = 512
torch.manual_seed(0)
table = torch.randn(1024 * TOGETHER, WIDTH).bfloat16().to("neuron")
firsts = [torch.randint(1024, (LOOKUPS, 1)) for _ in range(4)]
batches = [(first * TOGETHER + torch.arange(TOGETHER)).to("neuron") for first in firsts]
# mended: batches = [first.to("neuron") for first in firsts]
found = []
for rows in batches:
    found.append(torch.nn.functional.embedding(rows, table))  # fault
    # mended: found.append(torch.nn.functional.embedding(rows, table.view(1024, TOGETHER * WIDTH)))
