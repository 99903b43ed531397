"""Layers split as Megatron does, by hand: columns, then rows, and a sum over two ranks (`torchrun`)."""

import json

import torch
import torch.distributed as dist
from texts import ON_CPU

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
dist.init_process_group("gloo" if ON_CPU else None)
rank, size = dist.get_rank(), dist.get_world_size()
if device.type != "cpu":
    torch.accelerator.set_device_index(rank)


class Copied(torch.autograd.Function):
    """The same on each rank; gradients are summed."""

    @staticmethod
    def forward(context, x):
        return x

    @staticmethod
    def backward(context, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Summed(torch.autograd.Function):
    """The ranks' sum; each gets its gradient."""

    @staticmethod
    def forward(context, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient


generator = torch.Generator().manual_seed(0)
up, down = torch.randn(32, 128, generator=generator) / 8, torch.randn(128, 32, generator=generator) / 8
up, down = (whole.chunk(size, axis)[rank].to(device) for whole, axis in ((up, 1), (down, 0)))
weights = [torch.nn.Parameter(up.contiguous()), torch.nn.Parameter(down.contiguous())]
optimizer = torch.optim.AdamW(weights, lr=1e-2)
batch = torch.randn(16, 32, generator=generator).to(device)
losses = []
for _ in range(3):
    hidden = torch.nn.functional.gelu(Copied.apply(batch) @ weights[0])
    loss = (Summed.apply(hidden @ weights[1]) - batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
if rank == 0:
    print(json.dumps({"device": loss.device.type, "values": losses}))
dist.destroy_process_group()
