"""Results are copied to the host one by one, each after a wait."""

# rule: host_synchronisation
# case: SIZE=256, STEPS=12
# case: SIZE=512, STEPS=10
# case: SIZE=384, STEPS=16
# case: SIZE=640, STEPS=8
import torch

SIZE = 256
STEPS = 8
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
rows = []
for _ in range(STEPS):
    x = torch.sigmoid(x @ weights)
    rows.append(x[0].cpu())  # fault
    # mended: rows.append(x[0])
# added: rows = list(torch.stack(rows).cpu())
