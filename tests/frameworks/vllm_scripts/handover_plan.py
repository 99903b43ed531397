"""What the two schedulers' halves of `NeuronConnector` plan for requests, without a model: prints it as JSON.

A request is preempted before its prompt is computed, and goes on with other pages; another is cancelled; and
two have the same prompt, one of them with an adapter.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import torch
from vllm import SamplingParams
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.lora.request import LoRARequest
from vllm.v1.core.sched.output import KVConnectorBlockState
from vllm.v1.request import Request

from neuron_tools.frontends.vllm_platform.handover import CONSUMER, PRODUCER, NeuronConnector

BLOCK, PORT_FROM_SYSTEM = 4, 0
SIZES = ("total_num_hidden_layers", "total_num_kv_heads", "head_size")


def connector(role, part, port, cores=1):
    transfer = SimpleNamespace(kv_role=role, kv_port=port, get_from_extra_config=lambda _, default: default)
    settings = SimpleNamespace(
        kv_transfer_config=transfer,
        parallel_config=SimpleNamespace(
            rank=0, world_size=cores, tensor_parallel_size=cores, pipeline_parallel_size=1
        ),
        model_config=Mock(**{f"get_{name}.return_value": 2 for name in SIZES}),
        cache_config=SimpleNamespace(block_size=BLOCK),
    )
    return NeuronConnector(settings, part, None)


def meet(worker):
    """What a worker says when it meets the other instance's."""
    try:
        worker.register_kv_caches({"layer": torch.zeros(1)})
    except ValueError as error:
        return str(error)
    return "agreed"


def request(name, tokens, adapter=None):
    return Request(name, tokens, SamplingParams(max_tokens=1), None, lora_request=adapter)


def step(producer, counts, blocks):
    """The pages that leave in a step of so many tokens of each request."""
    state = KVConnectorBlockState(set(counts), lambda name: (blocks[name],), {})
    planned = SimpleNamespace(num_scheduled_tokens=counts, kv_connector_block_state=state)
    return {handover.request: handover.blocks for handover in producer.build_connector_meta(planned).each}


if __name__ == "__main__":
    listening = connector(PRODUCER, KVConnectorRole.WORKER, PORT_FROM_SYSTEM)
    port = listening._store.port
    producer, consumer = (connector(role, KVConnectorRole.SCHEDULER, port) for role in (PRODUCER, CONSUMER))

    long = request("long", [*range(12)])
    producer.update_state_after_alloc(long, None, 0)
    print("before", json.dumps(step(producer, {"long": 8}, {"long": [1, 2]})))
    producer.update_state_after_alloc(long, None, 0)  # after it was preempted
    print("resumed", json.dumps(step(producer, {"long": 8}, {"long": [7, 8]})))
    long.num_computed_tokens = 8
    print("ended", json.dumps(step(producer, {"long": 4}, {"long": [7, 8, 9]})))
    long.append_output_token_ids(3)
    producer.update_state_after_alloc(long, None, 0)
    print("again", json.dumps(step(producer, {"long": 13}, {"long": [4, 5, 6, 7]})))

    cancelled = request("cancelled", [*range(20, 30)])
    producer.update_state_after_alloc(cancelled, None, 0)
    producer.request_finished(cancelled, [1])
    print("cancelled", json.dumps(step(producer, {"cancelled": 10}, {"cancelled": [1, 2, 3]})))

    plain, adapted = (
        request(name, [*range(12)], adapter)
        for name, adapter in (("plain", None), ("adapted", LoRARequest("other", 1, "folder")))
    )
    found = [consumer.get_num_new_matched_tokens(each, 0)[0] for each in (adapted, plain)]
    pages = SimpleNamespace(get_block_ids=lambda: ([3, 4, 5],))
    consumer.update_state_after_alloc(plain, pages, found[1])
    taken = consumer.build_connector_meta(None).each
    found.append(consumer.get_num_new_matched_tokens(plain, 0)[0])
    with ThreadPoolExecutor() as workers:  # of the second instance one would be the first of two
        other = connector(CONSUMER, KVConnectorRole.WORKER, port, cores=2)
        answers = [workers.submit(meet, each) for each in (listening, other)]
        second = connector(CONSUMER, KVConnectorRole.WORKER, port, cores=2)
        answers.append(workers.submit(meet, second))
        print("layouts", json.dumps([answer.result() for answer in answers]))
    print("found", json.dumps(found))
    print("taken", json.dumps([handover.blocks for handover in taken]))
