"""An encoder layer with fused attention, compiled whole, in bf16."""

# case: WIDTH=512, LENGTH=512, BATCH=4
# case: WIDTH=768, LENGTH=512, BATCH=2
# case: WIDTH=512, LENGTH=1024, BATCH=2
import torch
from torch import nn

WIDTH = 512
LENGTH = 512
BATCH = 4
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.inputs(self.attention_norm(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (-1, 64)).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


layer = torch.compile(Layer().bfloat16().to("neuron"))
x = torch.randn(BATCH, LENGTH, WIDTH).bfloat16().to("neuron")
with torch.no_grad():
    for _ in range(4):
        x = layer(x)
