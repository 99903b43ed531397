"""Ranks of which one does more work in each step: the others wait for it in the all-reduce.

Run by torchrun: `torchrun --nproc_per_node 2 examples/faults/straggler.py`.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("neuron")
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(3)]).to("neuron", torch.bfloat16)
parallel = DistributedDataParallel(model)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
batch = torch.ones(1024, 1024, dtype=torch.bfloat16, device="neuron")
weights = torch.ones(1024, 1024, dtype=torch.bfloat16, device="neuron")
for _ in range(4):
    extra = 24 if dist.get_rank() == 1 else 0
    # mended: extra = 0
    for _ in range(extra):
        weights = weights @ batch  # fault
    parallel(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
