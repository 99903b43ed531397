"""Products of large fp32 matrices, one after the other."""

# rule: fp32_matmul
# case: SIZE=1024, STEPS=4
# case: SIZE=1280, STEPS=3
# case: SIZE=1024, STEPS=6
# case: SIZE=896, STEPS=6
# case: SIZE=768, STEPS=8
# case: SIZE=1024, STEPS=8
import torch

SIZE = 1024
STEPS = 4
torch.manual_seed(0)
weights = torch.full((SIZE, SIZE), 1 / SIZE, device="neuron")
# mended: weights = torch.full((SIZE, SIZE), 1 / SIZE, device="neuron", dtype=torch.bfloat16)
x = torch.full((SIZE, SIZE), 1 / SIZE, device="neuron")
# mended: x = torch.full((SIZE, SIZE), 1 / SIZE, device="neuron", dtype=torch.bfloat16)
for _ in range(STEPS):
    x = x @ weights  # fault
