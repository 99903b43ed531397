"""Training with linear layers in float8 by torchao."""

import json

import torch
from texts import ON_CPU, SENTENCES, model, tokenizer
from torchao.float8 import Float8LinearConfig, convert_to_float8_training

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
config = Float8LinearConfig(emulate=True)
narrow = convert_to_float8_training(model().to(device), config=config)
optimizer = torch.optim.SGD(narrow.parameters(), lr=0.1)
batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False).to(device)
losses = []
for _ in range(2):
    loss = narrow(**batch, labels=batch["input_ids"]).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(json.dumps({"device": loss.device.type, "values": losses}))
