"""The same tensor is copied to the device in every step."""

# rule: repeated_copies
# case: SIZE=512, STEPS=8
# case: SIZE=768, STEPS=8
# case: SIZE=1024, STEPS=6
# case: SIZE=1024, STEPS=12
# case: SIZE=1536, STEPS=5
# case: SIZE=640, STEPS=16
import torch

SIZE = 512
STEPS = 8
torch.manual_seed(0)
table = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16()
x = torch.randn(128, SIZE).bfloat16().to("neuron")
# added: weights = table.to("neuron")
for _ in range(STEPS):
    weights = table.to("neuron")  # fault
    # mended:
    x = torch.tanh(x @ weights)
