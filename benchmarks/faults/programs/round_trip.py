"""An activation goes to fp32 and back in every layer, for a function that needs no more than bf16."""

# rule: dtype_round_trips
# case: WIDTH=2048
import torch
from torch import nn

WIDTH = 2048
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.first(x)
        return torch.relu(h.float()).to(torch.bfloat16)  # fault
        # mended: return torch.relu(h)


model = nn.Sequential(*[Block() for _ in range(4)]).bfloat16().to("neuron")
x = torch.randn(1024, WIDTH).bfloat16().to("neuron")
with torch.no_grad():
    for _ in range(4):
        x = model(x)
