"""Ray Train's trainer for PyTorch with one worker, whose loop names the device that it wants."""

import json
import os
import sys
import tempfile


def loop(settings):
    sys.path.insert(0, settings["folder"])
    sys.argv[1:] = settings["arguments"]
    import torch
    from ray.train.torch import prepare_model
    from texts import ON_CPU, SENTENCES, model, tokenizer

    device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator()
    net = prepare_model(model(), move_to_device=device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    batch = tokenizer()(SENTENCES, padding=True, return_tensors="pt")["input_ids"].to(device)
    losses = []
    for _ in range(2):
        loss = net(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    with open(settings["file"], "w") as file:
        json.dump({"device": device.type, "values": torch.stack(losses).tolist()}, file)


if __name__ == "__main__":
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    ray.init(include_dashboard=False, num_cpus=2, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "found.json")
        own = os.path.dirname(os.path.abspath(__file__))
        TorchTrainer(
            loop,
            train_loop_config={"folder": own, "arguments": sys.argv[1:], "file": file},
            scaling_config=ScalingConfig(num_workers=1),
            run_config=RunConfig(storage_path=folder),
        ).fit()
        with open(file) as found:
            print(found.read())
