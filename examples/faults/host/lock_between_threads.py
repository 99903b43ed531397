"""A thread that keeps a lock which the loop needs, too."""

import threading
import time

import torch

LOCK = threading.Lock()
DONE = threading.Event()
METRICS = {"loss": 0}


def report():
    while not DONE.is_set():
        with LOCK:
            time.sleep(0.05)  # sends the metrics somewhere
        time.sleep(0.0005)


torch.manual_seed(0)
model = torch.nn.Linear(256, 256).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 256).to("neuron")
reporter = threading.Thread(target=report)
reporter.start()
for step in range(25):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with LOCK:  # fault
        METRICS["loss"] = step
DONE.set()
reporter.join()
