"""Every parameter is updated by operations of its own."""

# rule: unfused_updates
# case: LAYERS=8, WIDTH=64
# case: LAYERS=12, WIDTH=64
# case: LAYERS=16, WIDTH=32
# case: LAYERS=8, WIDTH=128
import torch

LAYERS = 8
WIDTH = 64
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to("neuron")
# added: optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
x = torch.randn(128, WIDTH).to("neuron")
for _ in range(4):
    model.zero_grad()
    model(x).square().mean().backward()
    with torch.no_grad():
        # added: optimizer.step()
        for parameter in model.parameters():
            # mended:
            parameter -= 0.01 * parameter.grad  # fault
            # mended:
