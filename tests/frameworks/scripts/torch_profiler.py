"""A training loop under PyTorch's profiler, which records the device by TorchNeuron's configuration."""

import json
from pathlib import Path

import torch
from texts import ON_CPU, SENTENCES, model, tokenizer
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")
config = NeuronConfig(modes=[ProfileMode.DEVICE, ProfileMode.RUNTIME], profile_output_dir="profiles")
net = model().to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False).to(device)
values = []
with profile(
    activities=[ProfilerActivity.CPU] if ON_CPU else [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
    experimental_config=None if ON_CPU else config,
    schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
    on_trace_ready=NeuronProfiler(config).export_trace,
) as profiler:
    for _ in range(2):
        with record_function("step of training"):
            loss = net(**batch, labels=batch["input_ids"]).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            values.append(loss.item())
        profiler.step()
(trace,) = Path("profiles").glob("*/*/trace.json")
events = json.loads(trace.read_text())["traceEvents"]
values.append(sum(event["name"] == "step of training" and "dur" in event for event in events))
print(json.dumps({"device": loss.device.type, "values": values}))
