"""Disaggregated prefill: keys and values of prompts from one instance of vLLM to another, from core to core.

The instance that prefills (`kv_producer`) sends a prompt's full pages in one message when it has computed
them, and puts the message's number in a queue of the prompt, in a store. The one that decodes
(`kv_consumer`) looks there when it plans a request, and receives them before the step that goes on with it.
A worker's peer is the other instance's worker of the same rank.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import PrefixStore, TCPStore
from torch.profiler import record_function
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)

from neuron_tools.device.distributed.registration import backend_of
from neuron_tools.frontends.vllm_platform.tracing import traced

PRODUCER, CONSUMER = "kv_producer", "kv_consumer"
_PATIENCE = timedelta(minutes=30)


@dataclass(frozen=True)
class Handover:
    """The pages of one prompt.

    Attributes:
        request: This instance's name of the request.
        prefilled: The first instance's name of it.
        number: Of the message.
        blocks: The pages, of which each layer has one of this number.
    """

    request: str
    prefilled: str
    number: int
    blocks: list[int]


@dataclass
class Handovers(KVConnectorMetadata):
    """Those of one step."""

    each: list[Handover] = field(default_factory=list)


class NeuronConnector(KVConnectorBase_V1):
    """Hands over what has been prefilled."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        settings, parallel = vllm_config.kv_transfer_config, vllm_config.parallel_config
        if settings.kv_role not in (PRODUCER, CONSUMER):
            raise ValueError(
                f"NeuronConnector does not support kv_role {settings.kv_role!r}: use {PRODUCER} for the "
                f"instance that prefills and {CONSUMER} for the one that decodes."
            )
        self._sends = settings.kv_role == PRODUCER
        self._block_size: int = vllm_config.cache_config.block_size
        self._rank, self._ranks = parallel.rank, parallel.world_size
        is_first = self._sends and role == KVConnectorRole.WORKER and self._rank == 0
        host = settings.get_from_extra_config("host", "127.0.0.1")
        self._store = TCPStore(
            host, settings.kv_port, is_master=is_first, wait_for_workers=False, timeout=_PATIENCE
        )
        self._prefilling: dict[str, Any] = {}
        self._coming = Handovers()
        self._caches: list[torch.Tensor] = []
        self._sent: list[Any] = []

    # Of the worker.

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Meet the other instance's worker.

        Args:
            kv_caches: The pages of each layer, (pages, heads, block size, size).
        """
        self._caches = list(kv_caches.values())
        self._meet()
        self._peer = backend_of(
            PrefixStore(f"worker {self._rank}", self._store),
            rank=0 if self._sends else 1,
            size=2,
            timeout=_PATIENCE,
            ranks=(self._rank, self._ranks + self._rank),
            name=f"kv {self._rank}",
        )

    def _meet(self) -> None:
        """Wait for the other instance's workers, and refuse pages that are not laid out as this one's."""
        own, other = (PRODUCER, CONSUMER) if self._sends else (CONSUMER, PRODUCER)
        layout = self._layout()
        self._store.set(own, json.dumps((layout, self._ranks)))
        theirs, other_ranks = json.loads(self._store.get(other))
        if self._store.add("met", 1) == self._ranks + other_ranks:
            self._store.set("all met", "")
        self._store.wait(["all met"])  # the store ends with the first worker of one of them
        differing = [
            f"{name} is {layout[name]} at the {own} and {theirs[name]} at the {other}"
            for name in layout
            if layout[name] != theirs[name]
        ]
        if differing:
            raise ValueError(
                f"NeuronConnector cannot hand over keys and values that are laid out otherwise "
                f"({', '.join(differing)}): start both with the same."
            )

    def _layout(self) -> dict[str, Any]:
        """What two instances must have in common, by the names of vLLM's options where there are such."""
        settings = self._vllm_config
        parallel, model = settings.parallel_config, settings.model_config
        return {
            "tensor_parallel_size": parallel.tensor_parallel_size,
            "pipeline_parallel_size": parallel.pipeline_parallel_size,
            "block_size": self._block_size,
            "kv_cache_dtype": str(self._caches[0].dtype),
            "layers": model.get_total_num_hidden_layers(),
            "heads": model.get_total_num_kv_heads(),
            "head_size": model.get_head_size(),
        }

    def start_load_kv(self, forward_context: Any, **options: Any) -> None:
        """Receive the pages that requests of this step go on from.

        Args:
            forward_context: Not needed.
            options: Likewise.
        """
        for handover in [] if self._sends else self._planned():
            with record_function(f"handover {handover.request} {handover.prefilled}"):
                sizes = [cache[0].numel() * len(handover.blocks) for cache in self._caches]
                received = self._caches[0].new_empty(sum(sizes))
                self._peer.recv([received], 0, handover.number).wait()
                blocks = self._on_device(handover.blocks)
                for cache, pages in zip(self._caches, received.split(sizes)):
                    cache.index_copy_(0, blocks, pages.view(len(blocks), *cache.shape[1:]))

    def wait_for_save(self) -> None:
        """Send the pages of prompts that this step has computed to their end."""
        for handover in self._planned() if self._sends else []:
            blocks = self._on_device(handover.blocks)
            pages = torch.cat([cache.index_select(0, blocks).flatten() for cache in self._caches])
            self._sent.append(self._peer.send([pages], 1, handover.number))
        self._sent = [work for work in self._sent if not work.is_completed()]

    @traced
    def wait_for_layer_load(self, layer_name: str) -> None:
        """All layers are there before the step."""

    @traced
    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **options: Any
    ) -> None:
        """All layers are sent after the step."""

    def _on_device(self, blocks: list[int]) -> torch.Tensor:
        return torch.tensor(blocks).to(self._caches[0].device)

    def _planned(self) -> list[Handover]:
        planned = self._get_connector_metadata()
        assert isinstance(planned, Handovers)
        return planned.each

    # Of the scheduler.

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """How many tokens of a request more the other instance has than this one.

        Args:
            request: vLLM's.
            num_computed_tokens: What this instance has of it.
        """
        tokens = self._full_pages(request) * self._block_size
        if self._sends or tokens <= num_computed_tokens or not self._store.queue_len(_prompt_key(request)):
            return 0, False
        return tokens - num_computed_tokens, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Note a prompt that is to be sent, or plan to receive what a request has been given pages for.

        Args:
            request: vLLM's; one that has been preempted comes again.
            blocks: Its pages.
            num_external_tokens: How many tokens they are for; none where it does without.
        """
        pages = self._full_pages(request)
        if self._sends and pages and not request.num_output_tokens:
            self._prefilling[request.request_id] = request
        if num_external_tokens:
            number, prefilled = self._store.queue_pop(_prompt_key(request), False).decode().split(maxsplit=1)
            own = blocks.get_block_ids()[0][:pages]
            self._coming.each.append(Handover(request.request_id, prefilled, int(number), own))

    def build_connector_meta(self, scheduler_output: Any) -> Handovers:
        """What a step hands over.

        Args:
            scheduler_output: The step.
        """
        if self._sends:
            return Handovers(list(self._leaving(scheduler_output)))
        coming, self._coming = self._coming, Handovers()
        return coming

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        """Forget a prompt that will not be computed to its end.

        Args:
            request: vLLM's.
            block_ids: Its pages, which may be given to others: what is sent is a copy.
        """
        self._prefilling.pop(request.request_id, None)
        return False, None

    def _leaving(self, step: Any) -> Iterator[Handover]:
        """The prompts that a step computes to their end."""
        for name, count in step.num_scheduled_tokens.items():
            request = self._prefilling.get(name)
            if request is not None and request.num_computed_tokens + count >= request.num_prompt_tokens:
                del self._prefilling[name]
                # Pages are asked for now: a request that has been preempted has others than at first.
                blocks = step.kv_connector_block_state.get_block_ids(name)[0][: self._full_pages(request)]
                number: int = self._store.add("messages", 1)
                self._store.queue_push(_prompt_key(request), f"{number} {name}")
                yield Handover(name, name, number, blocks)

    def _full_pages(self, request: Any) -> int:
        """Full pages of a prompt; the last token is left, for whose logits the model runs."""
        is_tokens = request.prompt_embeds is None
        return (request.num_prompt_tokens - 1) // self._block_size if is_tokens else 0


def _prompt_key(request: Any) -> str:
    """What the store calls a prompt: all that its keys and values depend on."""
    adapter = request.lora_request and request.lora_request.lora_name
    inputs = [feature.identifier for feature in request.mm_features]
    prompt = (request.prompt_token_ids, adapter, request.cache_salt, inputs)
    return hashlib.sha256(repr(prompt).encode()).hexdigest()
