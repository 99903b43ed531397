"""Writes a Llama and a Mixtral with random weights, a tokenizer of words `w0`, `w1`, ..., a LoRA adapter.

Beside them a model that drafts for the Llama, its weights not quite the same, and an EAGLE head, which
repeats what the Llama has just said: both are right now and then.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = 253
folder = sys.argv[1]
torch.manual_seed(0)
words = {
    **{f"w{number}": number for number in range(WORDS)},
    "<unk>": WORDS,
    "<s>": WORDS + 1,
    "</s>": WORDS + 2,
}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()


def tokenizer_in(place: "str | Path") -> None:
    """Write the tokenizer to a folder."""
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    ).save_pretrained(place)


tokenizer_in(folder)
sizes = {
    "vocab_size": len(words),
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,  # far from uniform logits: rounding chooses no token
}
llama = LlamaForCausalLM(LlamaConfig(**sizes)).float()
llama.save_pretrained(folder)

adapter, rank = Path(folder) / "adapter", 4
adapter.mkdir()
factors = {
    f"base_model.model.model.layers.{layer}.self_attn.{name}.lora_{side}.weight": 0.3 * torch.randn(shape)
    for layer in range(2)
    for name, size in (("q_proj", 128), ("v_proj", 64))
    for side, shape in (("A", (rank, 128)), ("B", (size, rank)))
}
save_file(factors, adapter / "adapter_model.safetensors")
settings = {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}
(adapter / "adapter_config.json").write_text(json.dumps(settings))

mixtral = Path(folder) / "mixtral"
tokenizer_in(mixtral)
MixtralForCausalLM(MixtralConfig(**sizes, num_local_experts=4)).float().save_pretrained(mixtral)

drafting = Path(folder) / "drafting"
tokenizer_in(drafting)
with torch.no_grad():
    for weights in llama.parameters():
        weights += 0.02 * torch.randn_like(weights)
llama.save_pretrained(drafting)

eagle = Path(folder) / "eagle"
tokenizer_in(eagle)
LlamaConfig(**{**sizes, "num_hidden_layers": 1}, architectures=["LlamaForCausalLM"]).save_pretrained(eagle)
head = {
    name: 0.02 * weights
    for name, weights in llama.model.layers[0].state_dict(prefix="layers.0.").items()
    if "input_layernorm" not in name  # EAGLE has none
}
head["fc.weight"] = torch.cat(
    (torch.zeros(128, 128), torch.eye(128)), 1
)  # the Llama's state, not the embedding
save_file({name: weights.clone() for name, weights in head.items()}, eagle / "model.safetensors")
