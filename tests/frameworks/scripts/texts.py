"""What the scripts of this folder share: a small Llama, a tokenizer of whole words, and a few sentences."""

import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SENTENCES = [
    "the cat sat on the mat",
    "a dog ran in the park",
    "the sun rose on the hill",
    "a bird sang to me",
]
ON_CPU = "--cpu" in sys.argv


def tokenizer():
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    vocabulary = {word: index for index, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def model(seed=0):
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
        )
    )
