"""`generate_batch`, greedy: prompts of unequal lengths, more of them than a step takes.

`--cpu` leaves the device out; `--manager` asks `init_continuous_batching` for them, one by one.
"""

import json
import sys

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

LENGTHS, TOKENS = (3, 25, 7, 18, 4), 6


def by_manager(model, prompts, *settings):
    """The answers to requests that come one after another."""
    manager = model.init_continuous_batching(*settings)
    manager.start()
    waiting = {manager.add_request(prompt, max_new_tokens=TOKENS) for prompt in prompts}
    answers = {}
    while len(answers) < len(waiting):
        answer = manager.get_result()
        if answer is not None and answer.is_finished():
            answers[answer.request_id] = answer
    manager.stop(block=True)
    return answers


if __name__ == "__main__":
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, initializer_range=0.2, **sizes)).eval()
    model = model.to("cpu" if "--cpu" in sys.argv else "neuron")
    prompts = [
        [(7 * number + place) % 64 for place in range(length)] for number, length in enumerate(LENGTHS)
    ]
    greedy = GenerationConfig(max_new_tokens=TOKENS, do_sample=False, eos_token_id=-1, pad_token_id=0)
    steps = ContinuousBatchingConfig(num_blocks=16, page_size=32, max_batch_tokens=32)
    generate = by_manager if "--manager" in sys.argv else LlamaForCausalLM.generate_batch
    answers = generate(model, prompts, greedy, steps)
    made = sorted(answers.values(), key=lambda answer: LENGTHS.index(len(answer.prompt_ids)))
    print("tokens", json.dumps([answer.generated_tokens for answer in made]))
