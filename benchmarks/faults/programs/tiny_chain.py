"""A chain of small elementwise operations, each launched by itself."""

# rule: tiny_operations host_bound
# case: SIZE=64, STEPS=20
# case: SIZE=128, STEPS=20
# case: SIZE=64, STEPS=40
# case: SIZE=256, STEPS=20
# case: SIZE=32, STEPS=30
import torch

SIZE = 64
STEPS = 20


def swish(x):
    return x * 0.5 + torch.tanh(x) * torch.sigmoid(x) - x.square() * 0.01  # fault


# added: swish = torch.compile(swish)
torch.manual_seed(0)
x = torch.randn(128, SIZE).to("neuron")
for _ in range(STEPS):
    x = swish(x)
