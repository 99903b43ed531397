"""A loop that logs more than a thousand lines to a file in every step."""

import logging
import tempfile

import torch

torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
with tempfile.NamedTemporaryFile(suffix=".log") as file:
    logging.basicConfig(filename=file.name, level=logging.INFO)
    for step in range(20):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for number in range(1500):
            logging.info("step %d: number %d", step, number)  # fault
