"""Lightning's `Trainer` on two ranks that it starts by itself: `ddp`, or `fsdp`, which the CPU has not."""

import json
import sys

import lightning
from language_model import LanguageModel
from texts import ON_CPU, SENTENCES, tokenizer
from torch.utils.data import DataLoader

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
