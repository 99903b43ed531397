"""Trains a small GPT-2 with Lightning: the library calls the module's own `training_step`."""

import lightning
import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel


class LanguageModel(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False)
        self.model = GPT2LMHeadModel(config)

    def training_step(self, batch, batch_index):
        return self.model(input_ids=batch, labels=batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


torch.manual_seed(0)
tokens = torch.randint(0, 512, (48, 64))
trainer = lightning.Trainer(
    accelerator="auto",
    devices=1,
    max_epochs=1,
    enable_checkpointing=False,
    enable_progress_bar=False,
    logger=False,
)
trainer.fit(LanguageModel(), DataLoader(tokens, batch_size=8))
