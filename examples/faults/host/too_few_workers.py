"""One worker process that cannot keep up with the loop."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.01)  # a store that answers slowly
        return torch.full((256,), float(index % 7))


torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(Pictures(), batch_size=16, num_workers=1):  # fault
    loss = model(batch.to("neuron")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
