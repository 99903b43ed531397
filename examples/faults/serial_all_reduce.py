"""Gradients that are reduced one by one after the backward pass, while nothing is computed.

Run by torchrun: `torchrun --nproc_per_node 2 examples/faults/serial_all_reduce.py`.
"""

import torch
import torch.distributed as dist

dist.init_process_group("neuron")
torch.manual_seed(0)
layers = [torch.nn.Linear(4096, 4096, bias=False) for _ in range(4)]
model = torch.nn.Sequential(*layers).to("neuron", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.ones(128, 4096, dtype=torch.bfloat16, device="neuron")
under_way = []


def begin(parameter):
    under_way.append(dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG, async_op=True))


hooks = []
# mended: hooks = [each.register_post_accumulate_grad_hook(begin) for each in model.parameters()]
for _ in range(3):
    model(batch).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)  # fault
        # mended: under_way.pop(0).wait()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
