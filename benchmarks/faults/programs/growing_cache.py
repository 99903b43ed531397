"""A cache of keys that a concatenation copies whole for every token."""

# rule: growing_caches
# case: WIDTH=2048, TOKENS=12, BEFORE=512
# case: WIDTH=2048, TOKENS=10, BEFORE=1024
# case: WIDTH=1024, TOKENS=16, BEFORE=1024
import torch

WIDTH = 2048
TOKENS = 12
BEFORE = 512
torch.manual_seed(0)
token = torch.randn(1, WIDTH).bfloat16().to("neuron")
cache = torch.zeros(BEFORE, WIDTH).bfloat16().to("neuron")
# mended: cache = torch.zeros(BEFORE + TOKENS, WIDTH).bfloat16().to("neuron")
for number in range(TOKENS):  # noqa: B007  its mended twin uses it
    cache = torch.cat([cache, token])  # fault
    # mended: cache[BEFORE + number] = token[0]
    token = torch.tanh(token)
