"""A table that never changes is computed in every step."""

# rule: recomputation
# case: SIZE=1024, STEPS=8
# case: SIZE=1536, STEPS=6
# case: SIZE=2048, STEPS=4
# case: SIZE=2048, STEPS=8
# case: SIZE=1280, STEPS=10
import torch

SIZE = 1024
STEPS = 8
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(128, SIZE).bfloat16().to("neuron")
# added: scaled = torch.softmax(weights, dim=-1)
for _ in range(STEPS):
    scaled = torch.softmax(weights, dim=-1)  # fault
    # mended:
    x = torch.tanh(x @ scaled)
