"""Gradients of a part that is never updated are computed all the same."""

# rule: frozen_gradients
# case: WIDTH=512, ROWS=512, STEPS=4
# case: WIDTH=768, ROWS=512, STEPS=3
# case: WIDTH=512, ROWS=1024, STEPS=4
# case: WIDTH=1024, ROWS=256, STEPS=3
import torch
from torch import nn

WIDTH = 512
ROWS = 512
STEPS = 4
torch.manual_seed(0)
made = {"device": "neuron", "dtype": torch.bfloat16}
body = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH, **made), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH, **made))
# added: body.requires_grad_(False)
head = nn.Linear(WIDTH, 64, **made)
optimizer = torch.optim.SGD(head.parameters(), lr=0.01, foreach=True)
x = torch.randn(ROWS, WIDTH, **made)
for _ in range(STEPS):
    optimizer.zero_grad()
    loss = head(body(x)).square().mean()  # fault
    loss.backward()
    optimizer.step()
