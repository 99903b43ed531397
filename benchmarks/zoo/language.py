"""Decoders, encoders and encoder-decoders on text, from `transformers` configurations."""

from __future__ import annotations

import torch
import transformers
from torch import nn

from benchmarks.zoo.case import Inputs

VOCABULARY = 128
BATCH, LENGTH = 2, 16
_DECODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "use_cache": False,
}


def llama() -> nn.Module:
    """Grouped-query attention, rotary positions, RMSNorm, gated SiLU."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**_DECODER))


def qwen3() -> nn.Module:
    """Like Llama, with normalised queries and keys."""
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**_DECODER, head_dim=16))


def mixtral() -> nn.Module:
    """A mixture of four experts, two of them chosen for each token."""
    config = transformers.MixtralConfig(**_DECODER, num_local_experts=4, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config)


def gpt2() -> nn.Module:
    """Learnt positions, LayerNorm, GELU, one projection for query, key and value."""
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=1,
        eos_token_id=None, use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def bert() -> nn.Module:
    """An encoder trained to fill in masked tokens."""
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


def t5() -> nn.Module:
    """An encoder and a decoder with relative position biases."""
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, use_cache=False,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def tokens() -> Inputs:
    """`input_ids` int64 [batch, length], and the same as `labels`."""
    ids = torch.randint(2, VOCABULARY, (BATCH, LENGTH))
    return {"input_ids": ids, "labels": ids.clone()}


def masked_tokens() -> Inputs:
    """Tokens with an attention mask that hides the end of the second row."""
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, LENGTH - 4 :] = 0
    return {**tokens(), "attention_mask": mask}
