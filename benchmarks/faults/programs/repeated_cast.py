"""An fp32 weight is cast to bf16 in every step."""

# rule: dtype_round_trips
# case: SIZE=1024, STEPS=8
# case: SIZE=1536, STEPS=6
# case: SIZE=2048, STEPS=4
# case: SIZE=2048, STEPS=8
# case: SIZE=1280, STEPS=10
import torch

SIZE = 1024
STEPS = 8
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).to("neuron")
x = torch.randn(128, SIZE).bfloat16().to("neuron")
# added: narrow = weights.to(torch.bfloat16)
for _ in range(STEPS):
    narrow = weights.to(torch.bfloat16)  # fault
    # mended:
    x = torch.tanh(x @ narrow)
