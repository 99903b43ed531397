"""DeepSpeed's ZeRO over two processes, parameters sharded too."""

import json
import sys

import deepspeed
import torch

CONFIGURATION = {
    "train_micro_batch_size_per_gpu": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
}
if "--cpu" in sys.argv:
    CONFIGURATION["optimizer"]["params"]["torch_adam"] = True

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIGURATION)
rank, losses = torch.distributed.get_rank(), []
for step in range(3):
    generator = torch.Generator().manual_seed(2 * step + rank)
    batch = torch.randn(4, 32, generator=generator).to(engine.device)
    loss = (engine(batch) - batch).square().mean()
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
if rank == 0:
    print(json.dumps({"device": torch.device(engine.device).type, "values": losses}))
torch.distributed.destroy_process_group()
