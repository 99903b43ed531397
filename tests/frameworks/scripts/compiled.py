"""Layers compiled one by one with inductor by name, and an exported program that was saved."""

import io
import json

import torch
from texts import ON_CPU, SENTENCES, model, tokenizer

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False).to(device)
values = []

by_layers = model().to(device)
for layer in by_layers.model.layers:
    layer.compile(mode="max-autotune-no-cudagraphs", backend="inductor")
optimizer = torch.optim.AdamW(by_layers.parameters(), lr=1e-2)
for _ in range(2):
    loss = by_layers(**batch, labels=batch["input_ids"]).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    values.append(loss.item())

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(device)
example = torch.linspace(-1, 1, 4 * 32).reshape(4, 32).to(device)
rows = torch.export.Dim("rows", min=2, max=64)
file = io.BytesIO()
torch.export.save(torch.export.export(network, (example,), dynamic_shapes=({0: rows},)), file)
file.seek(0)
loaded = torch.export.load(file).module()
for count in (4, 8):
    result = loaded(example.repeat(count // 4, 1))
    values += [result.sum().item(), result.std().item()]
print(json.dumps({"device": result.device.type, "values": values}))
