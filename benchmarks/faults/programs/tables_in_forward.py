"""A table of rotary angles is computed on the device in every call of a module."""

# rule: recomputation
# case: LENGTH=1024
import torch
from torch import nn

LENGTH = 1024
torch.manual_seed(0)


class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, width)
        # added: t = torch.arange(LENGTH, device="neuron").float()
        # added: rate = torch.exp(torch.arange(0, width, device="neuron").float() * (-9.2 / width))
        # added: self.table = torch.cos(torch.outer(t, rate)).bfloat16()

    def forward(self, x):
        t = torch.arange(LENGTH, device=x.device).float()
        # mended:
        rate = torch.exp(torch.arange(0, self.width, device=x.device).float() * (-9.2 / self.width))
        # mended:
        table = torch.cos(torch.outer(t, rate)).bfloat16()  # fault
        # mended: table = self.table
        return self.layer(x * table)


layers = nn.Sequential(*[Rotary(1024) for _ in range(3)]).bfloat16().to("neuron")
x = torch.randn(1, LENGTH, 1024).bfloat16().to("neuron")
with torch.no_grad():
    for _ in range(4):
        x = layers(x)
