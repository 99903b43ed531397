"""torchtune's own recipe for many devices on two ranks that `tune run` starts.

What is changed of its configuration file is what `torchtune_recipes.py` changes, and where losses go. The
recipe with LoRA asks for NCCL by name.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from torchtune import training
from torchtune_recipes import FULL, run

RANKS = ("--nproc_per_node", "2")


class Losses:
    """A logger of metrics, which only the first rank calls: a line with the device and each loss."""

    def __init__(self, file):
        self.file = Path(file)

    def log_config(self, configured):
        self.device = configured.device
        if self.device == "cpu":  # of which torchtune asks for memory statistics that it then refuses
            training.get_memory_stats = training.log_memory_stats = lambda *given, **named: {}

    def log_dict(self, payload, step):
        with self.file.open("a") as file:
            print(self.device, float(payload["loss"]), file=file)

    def close(self):
        pass


if __name__ == "__main__":
    file = Path(tempfile.mkdtemp()) / "losses"
    own = {"metric_logger": {"_component_": "torchtune_ranks.Losses", "file": str(file)}, "batch_size": 1}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))
    run("full_finetune_distributed", "llama3_2/1B_full.yaml", {**FULL, **own}, RANKS)
    lines = [line.split() for line in file.read_text().splitlines()]
    devices, losses = zip(*lines)
    print(json.dumps({"device": "+".join(set(devices)), "values": [float(loss) for loss in losses]}))
