"""Gradients that are reduced one by one after the backward pass, while nothing is computed.

Run by torchrun: `torchrun --nproc_per_node 2 examples/faults/serial_all_reduce.py`.
"""

import torch
import torch.distributed as dist

dist.init_process_group("neuron")
torch.manual_seed(0)
layers = [torch.nn.Linear(4096, 4096, bias=False) for _ in range(3)]
stages = torch.nn.Sequential(*layers).to("neuron", torch.bfloat16)
model = stages
# mended: model = torch.nn.parallel.DistributedDataParallel(stages)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.ones(128, 4096, dtype=torch.bfloat16, device="neuron")
for _ in range(3):
    model(batch).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)  # fault
        # mended: pass  # the backward pass has reduced it
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
