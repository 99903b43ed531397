"""What requests may ask of their tokens, in one batch, then the seeded ones alone: prints answers as JSON.

Arguments: the model's folder, more options of `LLM` as JSON.
"""

import json
import sys

from generate import LENGTHS, prompt

TOKENS = 8


def told(answer):
    """Tokens and text of each completion, why it ended, and log-probabilities where they were asked for."""
    return {
        "prompt_logprobs": known(answer.prompt_logprobs),
        "outputs": [
            {
                "tokens": list(output.token_ids), "text": output.text, "reason": output.finish_reason,
                "stopped_at": output.stop_reason, "logprobs": known(output.logprobs),
            }
            for output in answer.outputs
        ],
    }  # fmt: skip


def known(places):
    """Of each place, its tokens with rank and log-probability, by token."""
    return [
        place and sorted([token, each.rank, each.logprob] for token, each in place.items())
        for place in places or ()
    ]


if __name__ == "__main__":
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    greedy = {"temperature": 0, "max_tokens": TOKENS, "ignore_eos": True}
    sampled = {"temperature": 1.5, "max_tokens": TOKENS, "ignore_eos": True, "seed": 11}
    ways = {
        "logprobs": SamplingParams(**greedy, logprobs=3, prompt_logprobs=2),
        "penalties": SamplingParams(
            **greedy, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.5
        ),
        "biased": SamplingParams(**greedy, logit_bias={5: 20.0}, bad_words=["w5 w5"], min_tokens=3),
        "allowed": SamplingParams(**greedy, allowed_token_ids=[1, 2, 3, 50]),
        "choice": SamplingParams(
            temperature=0, max_tokens=TOKENS, structured_outputs=StructuredOutputsParams(choice=["w1", "w7"])
        ),
        "regex": SamplingParams(
            temperature=0, max_tokens=TOKENS, structured_outputs=StructuredOutputsParams(regex="(w1|w2)w3+")
        ),
        "three": SamplingParams(**sampled, n=3),
        "nucleus": SamplingParams(**sampled, top_p=0.8, top_k=20, min_p=0.01),
    }
    llm = LLM(
        sys.argv[1], dtype="float32", max_model_len=128, max_num_seqs=16, enable_prefix_caching=False,
        **json.loads(sys.argv[2]),
    )  # fmt: skip
    prompts = {way: prompt(number, LENGTHS[number % len(LENGTHS)]) for number, way in enumerate(ways)}
    plain = llm.generate(prompts["logprobs"], SamplingParams(**greedy), use_tqdm=False)[0].outputs[0]
    ways["stop"] = SamplingParams(**greedy, stop=[plain.text.split()[4]])
    prompts["stop"] = prompts["logprobs"]
    answers = llm.generate(list(prompts.values()), list(ways.values()), use_tqdm=False)
    print("answers", json.dumps({way: told(answer) for way, answer in zip(ways, answers)}))
    seeded = {way: llm.generate(prompts[way], ways[way], use_tqdm=False)[0] for way in ("three", "nucleus")}
    print("alone", json.dumps({way: told(answer) for way, answer in seeded.items()}))
