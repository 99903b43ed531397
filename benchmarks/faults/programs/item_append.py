"""Every step's loss is read in the loop, to be kept in a list."""

# rule: host_synchronisation
# case: SIZE=512, STEPS=10
# case: SIZE=768, STEPS=10
# case: SIZE=1024, STEPS=8
# case: SIZE=1024, STEPS=16
# case: SIZE=1280, STEPS=6
# case: SIZE=896, STEPS=12
import torch

SIZE = 512
STEPS = 8
torch.manual_seed(0)
weights = (torch.randn(SIZE, SIZE) / SIZE**0.5).bfloat16().to("neuron")
x = torch.randn(SIZE, SIZE).bfloat16().to("neuron")
losses = []
for _ in range(STEPS):
    x = torch.tanh(x @ weights)
    loss = x.mean()
    losses.append(loss.item())  # fault
    # mended: losses.append(loss)
# added: losses = torch.stack(losses).tolist()
