"""Trains a small GPT-2 with `accelerate`: the library places the model, the data and the backward pass."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
accelerator = Accelerator()
config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False)
tokens = torch.randint(0, 512, (48, 64))
model = GPT2LMHeadModel(config)
model, optimizer, batches = accelerator.prepare(
    model, torch.optim.AdamW(model.parameters(), lr=1e-3), DataLoader(tokens, batch_size=8)
)

losses = []
for batch in batches:
    output = model(input_ids=batch, labels=batch)
    accelerator.backward(output.loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(output.loss.detach())
print("losses", *(f"{loss.item():.4f}" for loss in losses))
