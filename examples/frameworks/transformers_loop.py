"""Trains a small GPT-2 of `transformers` in a loop of one's own: the heavy work is in the library."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"
config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False)
model = GPT2LMHeadModel(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 512, (8, 64)).to(device)

losses = []
for _ in range(6):
    output = model(input_ids=tokens, labels=tokens)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(output.loss.detach())
print("losses", *(f"{loss.item():.4f}" for loss in losses))
