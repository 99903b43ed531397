"""torchtune's own recipes for one device, full and LoRA, run by `tune run` with its own configuration files.

What is changed of these files stands in `CHANGES`, `FULL` and `LORA`: a small random model, sentences and a
record of the losses, made here.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import torch
import torchtune
import torchtune_recipes  # this file: components are found by name
from omegaconf import OmegaConf
from texts import ON_CPU, SENTENCES, tokenizer
from torchtune._cli.tune import main
from torchtune.models.llama3 import llama3

SIZES = {
    "vocab_size": 64,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "embed_dim": 32,
    "max_seq_len": 64,
}
LORA_SIZES = {
    "lora_attn_modules": ["q_proj", "v_proj", "output_proj"],
    "apply_lora_to_mlp": True,
    "lora_rank": 4,
    "lora_alpha": 8,
}
DEVICES, LOSSES = set(), []


class Checkpoints:
    """Loads random weights, and saves none."""

    def __init__(self, should_load_recipe_state):
        torch.manual_seed(0)
        self.weights = {name: value.cpu() for name, value in llama3(**SIZES).state_dict().items()}

    def load_checkpoint(self):
        return {"model": self.weights}

    def save_checkpoint(self, *given, **named):
        pass


class Losses:
    """A logger of metrics."""

    def log_config(self, configured):
        DEVICES.add(configured.device)

    def log_dict(self, payload, step):
        LOSSES.append(float(payload["loss"]))

    def close(self):
        pass


def words():
    made = tokenizer()
    made.pad_id = made.pad_token_id
    return made


def sentences(given):
    tokens = [given(sentence)["input_ids"] for sentence in SENTENCES]
    return [{"tokens": each, "labels": list(each)} for each in tokens]


CHANGES = {
    "tokenizer": {"_component_": "torchtune_recipes.words"},
    "dataset": {"_component_": "torchtune_recipes.sentences"},
    "checkpointer": {"_component_": "torchtune_recipes.Checkpoints"},
    "metric_logger": {"_component_": "torchtune_recipes.Losses"},
    "batch_size": 2,
    "epochs": 2,
    "seed": 0,
    "gradient_accumulation_steps": 1,
    "device": "cpu" if ON_CPU else "neuron",
    "dtype": "fp32",
}
FULL = {
    "model": {"_component_": "torchtune.models.llama3.llama3", **SIZES},
    "optimizer": {"_component_": "torch.optim.AdamW", "lr": 1e-2},
    "optimizer_in_bwd": True,
}
LORA = {"model": {"_component_": "torchtune.models.llama3.lora_llama3", **SIZES, **LORA_SIZES}}


def run(recipe, configuration, changes, ranks=()):
    configured = OmegaConf.load(Path(torchtune.__file__).parents[1] / "recipes/configs" / configuration)
    configured.update({**CHANGES, **changes, "output_dir": tempfile.mkdtemp()})
    file = Path(configured.output_dir) / "changed.yaml"
    OmegaConf.save(configured, file)
    sys.argv = ["tune", "run", *ranks, recipe, "--config", str(file)]
    with contextlib.suppress(SystemExit):  # a recipe ends its process
        main()


if __name__ == "__main__":
    run("full_finetune_single_device", "llama3_2/1B_full_single_device.yaml", FULL)
    run("lora_finetune_single_device", "llama3_2/1B_lora_single_device.yaml", LORA)
    found = {"device": "+".join(torchtune_recipes.DEVICES), "values": torchtune_recipes.LOSSES}
    print(json.dumps(found))
