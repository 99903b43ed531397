"""A collate function that puts a batch together number by number."""

import torch
from torch.utils.data import DataLoader

SAMPLES = [[float(number * sample % 13) for number in range(1024)] for sample in range(320)]


def collate(samples):
    batch = torch.empty(len(samples), 1024)
    for row, sample in enumerate(samples):
        for column, value in enumerate(sample):
            batch[row, column] = value  # fault
    return batch


torch.manual_seed(0)
model = torch.nn.Linear(1024, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(SAMPLES, batch_size=16, collate_fn=collate):
    loss = model(batch.to("neuron")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
