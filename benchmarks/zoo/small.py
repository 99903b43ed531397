"""Small configurations of any architecture of `transformers`: narrow, two layers, nothing left to chance."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import transformers
from torch import nn

_SIZES = {
    128: "vocab_size",
    64: (
        "intermediate_size hidden_dim ffn_dim ffn_hidden_size d_ff d_inner encoder_ffn_dim decoder_ffn_dim "
        "max_position_embeddings n_positions max_source_positions max_target_positions"
    ),
    32: (
        "hidden_size d_model n_embd dim embedding_size image_size moe_intermediate_size "
        "shared_expert_intermediate_size"
    ),
    8: "head_dim d_kv patch_size",
    4: (
        "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
        "num_experts num_local_experts"
    ),
    2: (
        "num_hidden_layers n_layer n_layers num_layers num_decoder_layers encoder_layers decoder_layers "
        "num_key_value_heads num_experts_per_tok bos_token_id"
    ),
    1: "decoder_start_token_id",
    0: "pad_token_id",
}
SMALL: Mapping[str, int] = MappingProxyType(
    {name: size for size, names in _SIZES.items() for name in names.split()}
)
"""Field of a configuration -> its value, where the configuration has the field."""
_CHANCE = re.compile(r"drop(?!_path_rates)|pdrop|mask_(time|feature)_prob|jitter|layerdrop")
_ENDS = ("eos_token_id", "forced_eos_token_id")


def small_settings(kind: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a configuration class: small sizes, no chance, no end of a text, and then `settings`.

    Args:
        kind: A configuration class of `transformers`.
        settings: What this architecture has of its own.
    """
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    chosen: dict[str, Any] = {name: size for name, size in SMALL.items() if name in fields}
    chosen |= {name: 0.0 for name, default in fields.items() if _is_chance(name, default)}
    chosen |= {name: None for name in _ENDS if name in fields}
    return chosen | dict(settings)


def small_model(class_name: str, settings: Mapping[str, Any]) -> nn.Module:
    """A model of `transformers` with random weights.

    Args:
        class_name: Of the model, such as "MistralForCausalLM".
        settings: What its configuration has of its own.
    """
    model_class = getattr(transformers, class_name)
    kind = model_class.config_class
    model: nn.Module = model_class(kind(**small_settings(kind, settings)))
    return model


def _is_chance(name: str, default: Any) -> bool:
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    return number and _CHANCE.search(name) is not None
