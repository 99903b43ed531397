"""Attention by the one operation for it, over long sequences."""

# case: HEADS=8, LENGTH=1024, DEPTH=64
# case: HEADS=4, LENGTH=2048, DEPTH=64
# case: HEADS=8, LENGTH=1024, DEPTH=128
import torch
from torch.nn.functional import scaled_dot_product_attention

HEADS = 8
LENGTH = 1024
DEPTH = 64
torch.manual_seed(0)
q, k, v = (torch.randn(1, HEADS, LENGTH, DEPTH).bfloat16().to("neuron") for _ in range(3))
for _ in range(4):
    q = scaled_dot_product_attention(q, k, v)
