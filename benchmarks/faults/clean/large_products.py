"""Products of large bf16 matrices, eagerly."""

# case: SIZE=1024, STEPS=4
# case: SIZE=1152, STEPS=3
# case: SIZE=1280, STEPS=3
import torch

SIZE = 1024
STEPS = 4
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
for _ in range(STEPS):
    x = x @ weights
