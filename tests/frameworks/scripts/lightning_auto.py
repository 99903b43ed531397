"""Lightning's `Trainer`, then its `Fabric`: both choose the device by themselves."""

import json

import lightning
import torch
from language_model import LanguageModel
from texts import ON_CPU, SENTENCES, model, tokenizer
from torch.utils.data import DataLoader

CHOICE = {"accelerator": "cpu" if ON_CPU else "auto", "devices": 1}


words = tokenizer()(SENTENCES, padding=True, return_tensors="pt")["input_ids"]
batches = DataLoader(words, batch_size=2)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trained = LanguageModel()
trainer = lightning.Trainer(max_epochs=2, **quiet, **CHOICE)
trainer.fit(trained, batches)

fabric = lightning.Fabric(**CHOICE)
again = model()
again, optimizer = fabric.setup(again, torch.optim.AdamW(again.parameters(), lr=1e-2))
losses = []
for batch in fabric.setup_dataloaders(batches):
    optimizer.zero_grad()
    loss = again(input_ids=batch, labels=batch).loss
    fabric.backward(loss)
    optimizer.step()
    losses.append(loss.item())
devices = {trainer.strategy.root_device.type, fabric.device.type}
print(json.dumps({"device": "+".join(devices), "values": trained.losses + losses}))
