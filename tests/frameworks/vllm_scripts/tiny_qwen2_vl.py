"""Writes a Qwen2-VL with random weights, and its processor: words `w0`, `w1`, ..., and images."""

import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
)

WORDS = 240
marks = [f"<|{mark}|>" for mark in ("vision_start", "vision_end", "image_pad", "video_pad", "vision_pad")]
names = [*(f"w{number}" for number in range(WORDS)), *marks, "<unk>", "</s>"]
places = {name: place for place, name in enumerate(names)}
words = Tokenizer(models.WordLevel(places, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="<unk>", eos_token="</s>", pad_token="</s>",
    additional_special_tokens=marks,
)  # fmt: skip
torch.manual_seed(0)
text = {
    "vocab_size": len(names), "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "initializer_range": 0.2, "eos_token_id": places["</s>"], "bos_token_id": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
}  # fmt: skip
vision = {
    "depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2, "initializer_range": 0.2
}  # fmt: skip
config = Qwen2VLConfig(
    text_config=text, vision_config=vision, image_token_id=places["<|image_pad|>"],
    video_token_id=places["<|video_pad|>"], vision_start_token_id=places["<|vision_start|>"],
    vision_end_token_id=places["<|vision_end|>"],
)  # fmt: skip
Qwen2VLForConditionalGeneration(config).float().save_pretrained(sys.argv[1])
images = Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=112 * 112)
Qwen2VLProcessor(images, tokenizer, Qwen2VLVideoProcessor()).save_pretrained(sys.argv[1])
