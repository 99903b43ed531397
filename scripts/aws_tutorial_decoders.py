"""Small decoders with random weights, which neuronx-distributed-inference's `inference_demo.py` runs."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_tutorial_notebooks import declare_vision_operators

SOURCE = "neuronx-distributed-inference/src/neuronx_distributed_inference"
WORDS = ("<unk>", "<s>", "</s>", *string.ascii_letters, " ", ".", *(f"<{number}>" for number in range(73)))
SHOWN = r"<(\d+)>(?![^\n]*\])"
"""A token of an output; the lists of tokens in messages end in brackets."""
_SIZES: Mapping[str, Any] = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
}  # fmt: skip
_EXPERTS: Mapping[str, Any] = {**_SIZES, "num_experts_per_tok": 2}
_DBRX: Mapping[str, Any] = {
    "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 128,
    "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
    "ffn_config": {
        "ffn_hidden_size": 128, "moe_num_experts": 4, "moe_top_k": 2, "ffn_act_fn": {"name": "silu"},
    },
}  # fmt: skip
_COMMAND = (
    "--model-type {kind} --task-type causal-lm run --model-path model --compiled-model-path compiled "
    "--tp-degree 2 --torch-dtype float32 --batch-size {batch} --max-context-length 48 --seq-len {length} "
    "--enable-bucketing --context-encoding-buckets 16 32 48 --token-generation-buckets 40 48 64 {options}"
)
PROMPTS = ("I believe the meaning of life is", "The colour of the evening sky is")
EDITS: Mapping[str, str] = {
    "import argparse\n": "import argparse\n"
    "from aws_tutorial_notebooks import declare_vision_operators\ndeclare_vision_operators()\n"
}
FOR_CPU: Mapping[str, str] = {
    '__name__ == "__main__":\n    main()': '__name__ == "__main__":\n'
    "    from aws_tutorial_decoders import generate_on_cpu\n    generate_on_cpu(parse_args())"
}
DRAFT_NOISE = 0.02
"""How far the draft's weights are from the model's, as a share of their spread: it is often right."""


@dataclass(frozen=True)
class Decoder:
    """One model, and how it is called.

    Attributes:
        kind: As the script names it.
        model: Class of Transformers.
        sizes: Of its configuration.
        options: Further arguments of the script.
        length: Of the CPU's sequences: a speculating model ends before it could get too long.
        batch: How many prompts there are.
    """

    kind: str
    model: str
    sizes: Mapping[str, Any] = field(default_factory=lambda: _SIZES)
    options: str = "--check-accuracy-mode logit-matching"
    length: int = 64
    batch: int = 2

    def arguments(self, length: int = 64) -> list[str]:
        """Of the script's command, for sequences of some length."""
        words = {"kind": self.kind, "length": length, "batch": self.batch, "options": self.options}
        prompts = (f"--prompt={prompt}" for prompt in PROMPTS[: self.batch])
        return [*shlex.split(_COMMAND.format(**words)), *prompts]

    def prepare(self) -> None:
        """Write the model, its tokenizer, and a draft of it into folders as of the hub."""
        import torch
        import transformers

        declare_vision_operators()
        torch.manual_seed(0)
        marks = {"vocab_size": len(WORDS), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
        kind = getattr(transformers, self.model)
        model = kind(kind.config_class(**self.sizes, **marks))
        save_decoder(model, "model", 0.3)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += DRAFT_NOISE * parameter.std() * torch.randn_like(parameter)
        save_decoder(model, "draft")


def save_decoder(model: Any, folder: str, spread: float = 0.0) -> None:
    """Write a model and a tokenizer of characters into a folder as of the hub.

    Args:
        model: Of Transformers.
        folder: Where.
        spread: Standard deviation of random weights that it gets; 0 keeps its own.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, PreTrainedTokenizerFast

    for parameter in model.parameters():
        if spread and parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=spread)
    model.save_pretrained(folder)
    GenerationConfig(bos_token_id=1, eos_token_id=2).save_pretrained(folder)
    ranks = {word: rank for rank, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(ranks, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)


def generate_on_cpu(arguments: Any) -> None:
    """Print what Transformers' own model generates, as the script prints what the device's does.

    Args:
        arguments: Of the script.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model_path)
    inputs = tokenizer(arguments.prompts, return_tensors="pt", return_token_type_ids=False)
    model = AutoModelForCausalLM.from_pretrained(arguments.model_path)
    outputs = model.generate(**inputs, max_length=arguments.seq_len, do_sample=False, pad_token_id=2)
    for number, text in enumerate(tokenizer.batch_decode(outputs, skip_special_tokens=True)):
        print(f"Output {number}: {text}")


_CHECKED = "--check-accuracy-mode token-matching --num-tokens-to-check 24 --speculation-length 4 "
DECODERS: Mapping[str, Decoder] = {
    "nxdi_mixtral": Decoder("mixtral", "MixtralForCausalLM", {**_EXPERTS, "num_local_experts": 4}),
    "nxdi_qwen2": Decoder("qwen2", "Qwen2ForCausalLM"),
    "nxdi_qwen3": Decoder("qwen3", "Qwen3ForCausalLM"),
    "nxdi_qwen3_moe": Decoder(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        {**_EXPERTS, "num_experts": 4, "moe_intermediate_size": 64, "norm_topk_prob": True},
    ),
    "nxdi_dbrx": Decoder("dbrx", "DbrxForCausalLM", _DBRX),
    "nxdi_speculation": Decoder(
        "llama",
        "LlamaForCausalLM",
        options=f"{_CHECKED} --draft-model-path draft --compiled-draft-model-path compiled_draft",
        length=62,
        batch=1,
    ),
    "nxdi_fused_speculation": Decoder(
        "llama",
        "LlamaForCausalLM",
        options=f"{_CHECKED} --draft-model-path draft --enable-fused-speculation --on-device-sampling",
        length=61,
        batch=1,
    ),
}
