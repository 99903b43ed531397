"""`flex_attention` with masked blocks and a function of the scores, eager and compiled."""

import json
import warnings

import torch
from texts import ON_CPU
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device=device.type)
torch.manual_seed(0)
query, key, value = torch.randn(3, 1, 2, 128, 16).to(device)
values = []
for attention in (flex_attention, torch.compile(flex_attention)):
    result = attention(query, key, value, score_mod=lambda s, b, h, i, j: s + (j - i) / 8, block_mask=mask)
    values += [result.abs().mean().item(), result.std().item()]
print(json.dumps({"device": result.device.type, "values": values}))
