"""An optimizer of torch.optim is told to update its parameters one by one."""

# rule: unfused_updates
# case: LAYERS=8, WIDTH=64
# case: LAYERS=12, WIDTH=64
# case: LAYERS=8, WIDTH=128
import torch

LAYERS = 8
WIDTH = 64
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to("neuron")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
# mended: optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)
x = torch.randn(128, WIDTH).to("neuron")
for _ in range(3):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()  # fault
