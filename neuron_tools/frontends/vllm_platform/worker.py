"""vLLM's worker on the device: where the model, its pages of keys and values, and the runner live."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Any

import psutil  # type: ignore[import-untyped]  # psutil has no types
import torch
from vllm.platforms import current_platform
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.worker_base import CompilationTimes

from neuron_tools.frontends.serving.cache_use import CacheUseRange
from neuron_tools.frontends.serving.requests import RequestRanges
from neuron_tools.frontends.vllm_platform.model_runner import NeuronModelRunner

_HOST_SHARE = 0.5
"""Of the host's free memory, for pages: the simulated device's memory is the host's."""


class NeuronWorker(Worker):
    """One NeuronCore's worker."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if multiprocessing.parent_process() is not None:
            atexit.register(gc.freeze)  # or the process collects for seconds at its end, and vLLM kills it
        self.use_v2_model_runner = False
        self._ranges: RequestRanges | None = None
        self._cache_use = CacheUseRange()

    def init_device(self) -> None:
        """Take the core of this worker's rank and join the other ranks.

        Raises:
            RuntimeError: There are fewer NeuronCores than workers.
        """
        found = torch.neuron.device_count()
        if self.local_rank >= found:
            raise RuntimeError(
                f"vLLM's worker {self.local_rank} has no NeuronCore: there are {found}. "
                "Lower the parallel sizes, or make more cores visible by NEURON_RT_VISIBLE_CORES."
            )
        self.device = torch.device("neuron", self.local_rank)
        torch.neuron.set_device(self.device)
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            self.distributed_init_method,
            self.local_rank,
            current_platform.dist_backend,
        )
        set_random_seed(self.model_config.seed)
        self._init_workspace_and_model_runner()

    def _make_model_runner(self) -> NeuronModelRunner:
        return NeuronModelRunner(self.vllm_config, self.device)

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        """No pool of its own: memory is not given back while a server sleeps."""
        return nullcontext()

    def determine_available_memory(self) -> int:
        """How much memory pages of keys and values take.

        No trial run measures the peak: a simulated run would cost time and stand in the profile.

        Returns:
            Bytes: what vLLM was told, or what its longest requests at once can use.
        """
        told = self.cache_config.kv_cache_memory_bytes
        if told is not None:
            return int(told)
        free, total = torch.neuron.mem_get_info(self.device)
        on_device = free - (1 - self.cache_config.gpu_memory_utilization) * total
        on_host = _HOST_SHARE * psutil.virtual_memory().available / self.parallel_config.world_size
        return int(min(on_device, on_host, self._largest_use()))

    def _largest_use(self) -> int:
        """Bytes of the pages that the most and longest requests fill, and of the page that none has."""
        specs = self.get_kv_cache_spec().values()
        requests, length = self.scheduler_config.max_num_seqs, self.model_config.max_model_len
        return sum((requests * ceil(length / spec.block_size) + 1) * spec.page_size_bytes for spec in specs)

    def execute_model(self, scheduler_output: Any) -> Any:
        """Run a step; the first worker records the requests that its engine tells it of."""
        arrived = getattr(scheduler_output, "neuron_arrived", None)
        if arrived is not None and self.rank == 0:
            self._ranges = self._ranges or RequestRanges()
            for request_id in arrived:
                self._ranges.arrive(request_id)
            for request_id in scheduler_output.finished_req_ids:  # some before they were worked on
                is_aborted = request_id in scheduler_output.neuron_aborted
                (self._ranges.abort if is_aborted else self._ranges.finish)(request_id)
            self._ranges.take(scheduler_output.num_scheduled_tokens)
            self._cache_use.hold(scheduler_output.neuron_blocks)
        return super().execute_model(scheduler_output)

    def sample_tokens(self, *arguments: Any) -> Any:
        """Choose the next tokens."""
        made = super().sample_tokens(*arguments)
        if self._ranges is not None and made is not None:
            for request_id, tokens in zip(made.req_ids, made.sampled_token_ids):
                self._ranges.give(request_id, len(tokens))
        return made

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """Nothing is compiled ahead; random numbers start anew, as after vLLM's own warm-up."""
        set_random_seed(self.model_config.seed)
        return CompilationTimes(language_model=0.0, encoder=0.0)
