"""Prefill at one instance of vLLM, decode at another: each in a process and on a core of its own.

Arguments: the model's folder, how many tokens each answer has, the connector's settings as JSON. Prompts have
their first token from the first instance, and all of them from the second.
"""

import json
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection

from generate import LENGTHS, prompt


def serve(core: int, role: str, peer: Connection) -> None:
    """Answer prompts until there are none."""
    os.environ["NEURON_RT_VISIBLE_CORES"] = str(core)
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    from vllm import LLM, SamplingParams

    llm = LLM(
        sys.argv[1], dtype="float32", max_model_len=128, max_num_seqs=4, enable_prefix_caching=False,
        disable_log_stats=False,
        kv_transfer_config={"kv_role": role, **json.loads(sys.argv[3])},
    )  # fmt: skip
    peer.send("ready")
    while prompts := peer.recv():
        tokens = 1 if role == "kv_producer" else int(sys.argv[2])
        answers = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True))
        counts = [answer.num_cached_tokens for answer in answers]
        peer.send(([list(answer.outputs[0].token_ids) for answer in answers], counts))


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    instances = []
    for core, role in enumerate(("kv_producer", "kv_consumer")):
        own, other = spawn.Pipe()
        process = spawn.Process(target=serve, args=(core, role, other))
        process.start()
        instances.append((process, own))
    for _, peer in instances:
        peer.recv()
    prompts = [prompt(number, length) for number, length in enumerate(LENGTHS)]
    for _, peer in instances:
        peer.send(prompts)
        tokens, cached = peer.recv()
    for process, peer in instances:
        peer.send(None)
        process.join()
    print("tokens", json.dumps(tokens))
    print("handed_over", json.dumps(cached))
    sys.exit(max(process.exitcode for process, _ in instances))
