"""Tokens are generated with a cache of fixed size, one compiled program for every step."""

# case: WIDTH=1024, LONGEST=512, ROWS=64
# case: WIDTH=2048, LONGEST=256, ROWS=32
# case: WIDTH=1024, LONGEST=1024, ROWS=32
import torch
from torch import nn

WIDTH = 1024
LONGEST = 512
ROWS = 64
torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        shape = (ROWS, WIDTH // 64, LONGEST, 64)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, place, mask):
        q, k, v = (part.unflatten(-1, (-1, 1, 64)) for part in self.inputs(x).chunk(3, dim=-1))
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        mixed = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, mask)
        x = x + mixed.flatten(1)
        return x + self.narrow(nn.functional.gelu(self.wide(x)))


decoder = Decoder().bfloat16().to("neuron")
step = torch.compile(decoder)
x = torch.randn(ROWS, WIDTH).bfloat16().to("neuron")
places = torch.arange(8).to("neuron")
masks = (torch.arange(LONGEST) <= torch.arange(8)[:, None, None]).to("neuron")
with torch.no_grad():
    for number in range(8):
        x = step(x, places[number : number + 1], masks[number])
