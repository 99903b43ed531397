"""A bf16 network is trained: compiled from input to loss and back, all parameters updated at once."""

# case: WIDTH=512, ROWS=4096
# case: WIDTH=640, ROWS=4096
# case: WIDTH=768, ROWS=4096
import torch
from torch import nn

WIDTH = 512
ROWS = 4096
torch.manual_seed(0)
made = {"device": "neuron", "dtype": torch.bfloat16}
model = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH, **made), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH, **made))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
x = torch.randn(ROWS, WIDTH, **made)


@torch.compile
def loss_of(x):
    return model(x).square().mean()


losses = []
for _ in range(4):
    optimizer.zero_grad()
    loss = loss_of(x)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
print(torch.stack(losses).float().cpu())
