"""A teacher that is not trained runs again on the same batch in every epoch."""

# rule: recomputation
# case: WIDTH=1024
import torch
from torch import nn

WIDTH = 1024
torch.manual_seed(0)
made = {"device": "neuron", "dtype": torch.bfloat16}
teacher = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH, **made), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, **made))
teacher.requires_grad_(False)
student = nn.Linear(WIDTH, WIDTH).bfloat16().to("neuron")
optimizer = torch.optim.SGD(student.parameters(), lr=0.01, foreach=True)
x = torch.randn(1024, WIDTH).bfloat16().to("neuron")
# added: goal = teacher(x)
for _ in range(6):
    goal = teacher(x)  # fault
    # mended:
    loss = (student(x) - goal).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
