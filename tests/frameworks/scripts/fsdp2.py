"""Accelerate with FSDP2 on two ranks (`torchrun --nproc-per-node 2 fsdp2.py`)."""

import json
import os

import torch
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin
from texts import ON_CPU, SENTENCES, model, tokenizer

plugin = FullyShardedDataParallelPlugin(
    fsdp_version=2,
    auto_wrap_policy="transformer_based_wrap",
    transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
)
accelerator = Accelerator(fsdp_plugin=plugin, cpu=ON_CPU)
net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
net, optimizer = accelerator.prepare(net, optimizer)
mine = SENTENCES[accelerator.process_index :: accelerator.num_processes]
batch = tokenizer()(
    mine, padding="max_length", max_length=8, return_tensors="pt", return_token_type_ids=False
)
batch = batch.to(accelerator.device)
losses = []
for _ in range(2):
    loss = net(**batch, labels=batch["input_ids"]).loss
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
if os.environ.get("RANK", "0") == "0":
    print(json.dumps({"device": accelerator.device.type, "values": losses}))
