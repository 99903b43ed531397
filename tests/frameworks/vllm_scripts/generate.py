"""`LLM.generate`, greedy: prompts of unequal lengths, more and longer than a step takes, one begun by another."""

import json
import sys

from vllm import LLM, SamplingParams

LENGTHS = (3, 50, 17, 5, 40, 21)


def prompt(number: int, length: int) -> str:
    return " ".join(f"w{(7 * number + 3 * place + place * place) % 250}" for place in range(length))


if __name__ == "__main__":
    llm = LLM(
        sys.argv[1], dtype="float32", max_model_len=128, max_num_seqs=4, max_num_batched_tokens=32,
        enable_chunked_prefill=True, enable_prefix_caching=True, **json.loads(sys.argv[2]),
    )  # fmt: skip
    prompts = [prompt(number, length) for number, length in enumerate(LENGTHS)]
    prompts.append(f"{prompts[1]} w3 w4")
    answers = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=8, ignore_eos=True))
    print("tokens", json.dumps([list(answer.outputs[0].token_ids) for answer in answers]))
    print("cached", sum(answer.num_cached_tokens for answer in answers))
