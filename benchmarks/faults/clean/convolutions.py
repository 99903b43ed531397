"""A compiled convolutional network in bf16 sorts a large batch of pictures."""

# case: CHANNELS=64, SIDE=32, BATCH=16
# case: CHANNELS=128, SIDE=32, BATCH=8
# case: CHANNELS=128, SIDE=16, BATCH=32
import torch
from torch import nn

CHANNELS = 64
SIDE = 32
BATCH = 16
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
    nn.ReLU(),
)
run = torch.compile(model.bfloat16().to("neuron"))
x = torch.randn(BATCH, CHANNELS, SIDE, SIDE).bfloat16().to("neuron")
with torch.no_grad():
    for _ in range(3):
        x = run(x)
