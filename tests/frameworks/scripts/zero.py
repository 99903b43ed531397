"""DeepSpeed's ZeRO over two processes, its three stages one after another."""

import json
import sys

import deepspeed
import torch


def configuration(stage):
    optimizer = {"type": "AdamW", "params": {"lr": 1e-2}}
    if "--cpu" in sys.argv:
        optimizer["params"]["torch_adam"] = True
    zero = {"stage": stage, "stage3_param_persistence_threshold": 0}
    return {"train_micro_batch_size_per_gpu": 4, "optimizer": optimizer, "zero_optimization": zero}


def train(stage):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=configuration(stage)
    )
    losses = []
    for step in range(3):
        generator = torch.Generator().manual_seed(2 * step + torch.distributed.get_rank())
        batch = torch.randn(4, 32, generator=generator).to(engine.device)
        loss = (engine(batch) - batch).square().mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return torch.device(engine.device).type, losses


device, values = "", []
for stage in (1, 2, 3):
    device, losses = train(stage)
    values += losses
if torch.distributed.get_rank() == 0:
    print(json.dumps({"device": device, "values": values}))
torch.distributed.destroy_process_group()
