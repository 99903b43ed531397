"""Attention as two products with a softmax between them, its scores in memory."""

# rule: unfused_attention
# case: HEADS=4, LENGTH=512, DEPTH=64
# case: HEADS=8, LENGTH=256, DEPTH=64
# case: HEADS=2, LENGTH=512, DEPTH=128
import torch

HEADS = 4
LENGTH = 512
DEPTH = 64
torch.manual_seed(0)
q, k, v = (torch.randn(1, HEADS, LENGTH, DEPTH).bfloat16().to("neuron") for _ in range(3))
for _ in range(4):
    scores = torch.softmax(q @ k.transpose(-2, -1) / DEPTH**0.5, dim=-1)  # fault
    # mended:
    q = scores @ v
    # mended: q = torch.nn.functional.scaled_dot_product_attention(q, k, v)
