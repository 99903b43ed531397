"""Products of large bf16 matrices, eagerly."""

# case: SIZE=1280, STEPS=2
# case: SIZE=1408, STEPS=2
# case: SIZE=1536, STEPS=2
import torch

SIZE = 1280
STEPS = 2
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
for _ in range(STEPS):
    x = x @ weights
