"""A model returns a second result that its caller drops."""

# rule: unused_outputs
# case: WIDTH=1024
import torch
from torch import nn

WIDTH = 1024
torch.manual_seed(0)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.main, self.side = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x):
        y = torch.tanh(self.main(x))
        aux = self.side(x)  # fault
        # mended: aux = None
        return y, aux


model = Heads().bfloat16().to("neuron")
x = torch.randn(1024, WIDTH).bfloat16().to("neuron")
with torch.no_grad():
    for _ in range(8):
        x, _ = model(x)
