"""The small Llama as a module of Lightning, which keeps each step's loss, the mean of all ranks."""

import lightning
import torch
from texts import model


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
