"""Linear layers in 8 and 4 bits with bitsandbytes."""

import json

import bitsandbytes
import torch
from texts import ON_CPU

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)).to(device)
values = []
for kind in (bitsandbytes.nn.Linear8bitLt, bitsandbytes.nn.LinearNF4, bitsandbytes.nn.LinearFP4):
    torch.manual_seed(0)
    options = {"has_fp16_weights": False} if kind is bitsandbytes.nn.Linear8bitLt else {}
    layer = kind(64, 128, **options)
    layer.load_state_dict(torch.nn.Linear(64, 128).state_dict())
    result = layer.to(device)(x)
    values += [result.float().abs().mean().item(), result.float().std().item()]
print(json.dumps({"device": result.device.type, "values": values}))
