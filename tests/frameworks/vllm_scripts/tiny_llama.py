"""Writes a Llama with random weights to a folder, and a tokenizer whose words are `w0`, `w1`, ..."""

import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

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
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
).save_pretrained(folder)
LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,  # far from uniform logits: rounding chooses no token
    )
).float().save_pretrained(folder)
