"""A pipeline of two stages whose batch is cut into two microbatches: each stage waits for the other.

Run by torchrun: `torchrun --nproc_per_node 2 examples/faults/few_microbatches.py`.
"""

import torch
import torch.distributed as dist
from torch import nn

LAYERS = (3, 3)
MICROBATCHES = 2
# mended: MICROBATCHES = 8
ROWS, WIDTH = 32768, 1024
dist.init_process_group("neuron")
rank = dist.get_rank()
torch.manual_seed(0)
stage = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS[rank]))).to("neuron", torch.bfloat16)
batch = torch.randn(ROWS, WIDTH).to("neuron", torch.bfloat16)
with torch.no_grad():
    for _ in range(2):
        for part in batch.chunk(MICROBATCHES):  # fault
            if rank:
                part = torch.empty_like(part)
                dist.recv(part, 0)
            result = stage(part)
            if not rank:
                dist.send(result, 1)
        largest = result.max()
        dist.all_reduce(largest, dist.ReduceOp.MAX)
dist.destroy_process_group()
