"""A data set that does in `__getitem__` what it could do once."""

import torch
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        text = " ".join(str(number * index % 977) for number in range(20_000))  # fault
        return torch.full((256,), float(len(text)))


torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(Tokens(), batch_size=16):
    loss = model(batch.to("neuron")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
