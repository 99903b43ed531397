"""One product of a bf16 model is computed in fp32 and cast back."""

# rule: upcast_products
# case: SIZE=1024, STEPS=4
# case: SIZE=768, STEPS=6
# case: SIZE=1280, STEPS=4
# case: SIZE=1536, STEPS=3
import torch

SIZE = 1024
STEPS = 4
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
for _ in range(STEPS):
    x = (x.float() @ weights.float()).bfloat16()  # fault
    # mended: x = x @ weights
    x = torch.relu(x)
