"""A second result is computed and never used."""

# rule: unused_outputs
# case: SIZE=512, STEPS=10
# case: SIZE=1024, STEPS=6
# case: SIZE=1024, STEPS=12
# case: SIZE=1536, STEPS=5
# case: SIZE=768, STEPS=8
# case: SIZE=1280, STEPS=8
import torch

SIZE = 512
STEPS = 8
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
side = (torch.randn(SIZE, 2 * SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
for _ in range(STEPS):
    auxiliary = x @ side  # fault
    # mended:
    x = torch.tanh(x @ weights)
