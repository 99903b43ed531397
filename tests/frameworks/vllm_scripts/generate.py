"""`LLM.generate`, greedy: prompts of unequal lengths, more and longer than a step takes.

Arguments: the model's folder, how many tokens each answer has, more options of `LLM` as JSON, and where these
allow LoRA the folder of an adapter for every other prompt.
"""

import json
import sys
from collections import Counter

LENGTHS = (3, 50, 17, 5, 40, 21)


def prompt(number: int, length: int) -> str:
    return " ".join(f"w{(7 * number + 3 * place + place * place) % 250}" for place in range(length))


if __name__ == "__main__":
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    llm = LLM(
        sys.argv[1], dtype="float32", max_model_len=128, max_num_seqs=4, max_num_batched_tokens=32,
        enable_chunked_prefill=True, enable_prefix_caching=True, disable_log_stats=False,
        **json.loads(sys.argv[3]),
    )  # fmt: skip
    prompts = [prompt(number, length) for number, length in enumerate(LENGTHS)]
    prompts.append(f"{prompts[1]} w3 w4")
    adapter = LoRARequest("adapter", 1, sys.argv[4]) if sys.argv[4:] else None
    answers = llm.generate(
        prompts,
        SamplingParams(temperature=0, max_tokens=int(sys.argv[2]), ignore_eos=True),
        lora_request=[adapter if number % 2 else None for number in range(len(prompts))],
    )
    counters: "Counter[str]" = Counter()
    for metric in llm.get_metrics():
        counters[metric.name] += getattr(metric, "value", 0) or getattr(metric, "count", 0)
    print("tokens", json.dumps([list(answer.outputs[0].token_ids) for answer in answers]))
    print("cached", sum(answer.num_cached_tokens for answer in answers))
    print("accepted", counters["vllm:spec_decode_num_accepted_tokens"])
    print("counters", json.dumps(counters))
