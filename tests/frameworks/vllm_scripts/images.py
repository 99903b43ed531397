"""Prompts with and without an image, greedy, by vLLM; with `--transformers` by transformers, on the CPU.

Arguments: the model's folder, how many tokens each answer has.
"""

import json
import sys

import numpy as np
from PIL import Image

MARK = "<|vision_start|><|image_pad|><|vision_end|>"


def prompts():
    """Texts, and the image of each; the last has none."""
    pixels = np.random.default_rng(0)
    for number in range(3):
        image = Image.fromarray(pixels.integers(0, 255, (56 + 28 * number, 56, 3), dtype=np.uint8))
        yield f"w1 {MARK} w{number} w3", image
    yield "w1 w2 w3", None


def by_vllm(folder, tokens):
    from vllm import LLM, SamplingParams

    llm = LLM(
        folder, dtype="float32", max_model_len=256, max_num_seqs=4,
        limit_mm_per_prompt={"image": 1, "video": 0},
    )  # fmt: skip
    asked = [
        {"prompt": text, **({"multi_modal_data": {"image": image}} if image else {})}
        for text, image in prompts()
    ]
    answers = llm.generate(asked, SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True))
    return [list(answer.outputs[0].token_ids) for answer in answers]


def by_transformers(folder, tokens):
    from transformers import AutoModelForImageTextToText, AutoProcessor, GenerationConfig

    model = AutoModelForImageTextToText.from_pretrained(folder).float().eval()
    processor = AutoProcessor.from_pretrained(folder)
    greedy = GenerationConfig(max_new_tokens=tokens, do_sample=False, eos_token_id=None, pad_token_id=0)
    answers = []
    for text, image in prompts():
        inputs = processor(text=text, images=image, return_tensors="pt")
        made = model.generate(**inputs, generation_config=greedy)[0]
        answers.append(made[inputs["input_ids"].shape[1] :].tolist())
    return answers


if __name__ == "__main__":
    answer = by_transformers if "--transformers" in sys.argv else by_vllm
    print("tokens", json.dumps(answer(sys.argv[1], int(sys.argv[2]))))
