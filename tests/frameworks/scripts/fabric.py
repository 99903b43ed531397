"""A loop of one's own on Lightning's `Fabric`, on the device that it finds."""

import json

import lightning
import torch
from texts import ON_CPU, SENTENCES, model, tokenizer
from torch.utils.data import DataLoader

fabric = lightning.Fabric(accelerator="cpu" if ON_CPU else "auto", devices=1)
fabric.launch()
net = model()
net, optimizer = fabric.setup(net, torch.optim.AdamW(net.parameters(), lr=1e-2))
words = tokenizer()(SENTENCES, padding=True, return_tensors="pt")["input_ids"]
losses = []
for batch in fabric.setup_dataloaders(DataLoader(words, batch_size=2)):
    loss = net(input_ids=batch, labels=batch).loss
    fabric.backward(loss)
    fabric.clip_gradients(net, optimizer, max_norm=0.5)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(json.dumps({"device": fabric.device.type, "values": losses}))
