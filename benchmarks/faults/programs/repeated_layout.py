"""A weight is brought into another layout in every step."""

# rule: layout_copies
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
# added: turned = weights.t().contiguous()
for _ in range(STEPS):
    turned = weights.t().contiguous()  # fault
    # mended:
    x = torch.tanh(x @ turned)
