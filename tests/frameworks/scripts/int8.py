"""Weights and activations in int8 with torchao, eager and compiled."""

import json

import torch
from texts import ON_CPU, SENTENCES, model, tokenizer
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False)
values = []
for config in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
    quantized = model().eval().to(device)
    quantize_(quantized, config)
    with torch.no_grad():
        logits = quantized(**batch.to(device)).logits
    values += [logits.float().abs().mean().item(), logits.float().std().item()]
print(json.dumps({"device": logits.device.type, "values": values}))
