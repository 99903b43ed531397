"""Lightning's `Trainer` on two ranks that it starts by itself: `ddp`, or `fsdp`, which the CPU has not."""

import json
import sys

import lightning
import torch
from texts import ON_CPU, SENTENCES, model, tokenizer
from torch.utils.data import DataLoader


class LanguageModel(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model()
        self.losses = []

    def training_step(self, batch, number):
        loss = self.model(input_ids=batch, labels=batch).loss
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


words = tokenizer()(SENTENCES, padding=True, return_tensors="pt")["input_ids"]
trained = LanguageModel()
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu" if ON_CPU else "auto",
    devices=2,
    strategy="ddp" if ON_CPU else sys.argv[1],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(trained, DataLoader(words, batch_size=2))
if trainer.is_global_zero:
    print(json.dumps({"device": trainer.strategy.root_device.type, "values": trained.losses}))
