"""Batches of token ids, all padded to the length that the longest text of all might have."""

# rule: padding
# case: WIDTH=256, MOST=512, ROWS=8
# case: WIDTH=512, MOST=384, ROWS=4
# case: WIDTH=256, MOST=1024, ROWS=4
import torch
from torch import nn

WIDTH = 256
MOST = 512
ROWS = 8
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = (part.unflatten(-1, (-1, 64)).transpose(1, 2) for part in self.inputs(x).chunk(3, dim=-1))
        attended = nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.mixed(attended.transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(x)))


def joined(texts):
    batch = torch.zeros(len(texts), MOST, dtype=torch.long)  # fault
    # mended: batch = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    for row, text in enumerate(texts):
        batch[row, : len(text)] = text
    return batch


model = nn.Sequential(nn.Embedding(1000, WIDTH), Block(), Block()).bfloat16().to("neuron")
texts = [torch.randint(1, 1000, (32 + 13 * number % 96,)) for number in range(3 * ROWS)]
with torch.no_grad():
    for first in range(0, len(texts), ROWS):
        result = model(joined(texts[first : first + ROWS]).to("neuron"))[:, 0]
