"""What vLLM asks of a platform: names, memory, and the classes that do the work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from vllm.platforms.interface import Platform, PlatformEnum

from neuron_tools.frontends.vllm_platform.ending import stop_reader_first
from neuron_tools.late_import import after_import

NAME = "neuron"
_DRAFTS = ("ngram", "suffix", "draft_model", "eagle")
"""Methods of speculative decoding whose kernels have a form in PyTorch's operators."""
_GRACE_S = 60
"""What an engine and its workers are given to end before they are killed: they write the rest of profiles."""
_PACKAGE = "neuron_tools.frontends.vllm_platform"
_CONNECTOR, _CONNECTOR_MODULE = "NeuronConnector", f"{_PACKAGE}.handover"


class NeuronPlatform(Platform):
    """AWS NeuronCores, or the simulated device."""

    _enum = PlatformEnum.OOT
    device_name = NAME
    device_type = NAME
    dispatch_key = "PrivateUse1"
    dist_backend = NAME
    device_control_env_var = "NEURON_RT_VISIBLE_CORES"
    simple_compile_backend = "eager"

    @classmethod
    def import_kernels(cls) -> None:
        """None: vLLM's C++ kernels are other devices'; each has a form in PyTorch's operators."""

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        """Put PyTorch's operators where vLLM would launch Triton kernels."""
        from neuron_tools.frontends.vllm_platform.kernels import install

        install()

    @classmethod
    def pre_register_and_update(cls, parser: Any = None) -> None:
        """Let `NeuronConnector` be found by its name, as vLLM's own are, where settings are made.

        Args:
            parser: Of a command's options, not needed.
        """
        from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

        if _CONNECTOR not in KVConnectorFactory._registry:
            KVConnectorFactory.register_connector(_CONNECTOR, _CONNECTOR_MODULE, _CONNECTOR)

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Choose this platform's worker and scheduler, and what of the model is compiled.

        Args:
            vllm_config: vLLM's settings, which are changed.

        Raises:
            NotImplementedError: The settings ask for latent attention, a type of keys and values, or drafts
                that the platform lacks: said here, before the engine has a process of its own.
        """
        # Not importable while vLLM chooses the platform.
        from vllm.config import CompilationMode, CUDAGraphMode

        _refuse(_asked_in_vain(vllm_config))
        # A child must not inherit the runtime's threads and device memory by fork.
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
        _give_time_to_end(vllm_config)
        parallel = vllm_config.parallel_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = f"{_PACKAGE}.worker.NeuronWorker"
        parallel.disable_custom_all_reduce = True
        scheduler = vllm_config.scheduler_config
        scheduler.async_scheduling = False
        if scheduler.scheduler_cls is None:
            alone = parallel.distributed_executor_backend == "uni"
            name = "RecordingScheduler" if alone else "TellingScheduler"
            scheduler.scheduler_cls = f"{_PACKAGE}.scheduler.{name}"
        transfer = vllm_config.kv_transfer_config
        is_handed_over = transfer is not None and transfer.kv_connector == _CONNECTOR
        if is_handed_over:  # engines and workers in processes of their own do not register it
            transfer.kv_connector_module_path = _CONNECTOR_MODULE
        compilation = vllm_config.compilation_config
        compilation.mode = CompilationMode.NONE
        if not compilation.cudagraph_mode.has_full_cudagraphs():
            compilation.cudagraph_mode = CUDAGraphMode.NONE
        else:
            from neuron_tools.frontends.vllm_platform.graphs import token_buckets

            # vLLM's own connectors save the keys and values of a prompt layer by layer.
            is_whole = transfer is None or is_handed_over
            compilation.cudagraph_mode = CUDAGraphMode.FULL if is_whole else CUDAGraphMode.FULL_DECODE_ONLY
            sizes = token_buckets(compilation.cudagraph_capture_sizes, scheduler.max_num_batched_tokens)
            compilation.cudagraph_capture_sizes = sizes
            compilation.max_cudagraph_capture_size = sizes[-1]

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        """Steps are graphs, unless the user wants none."""
        return True

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> str:
        """The paged attention.

        Args:
            selected_backend: What the user chose among vLLM's own; there is one here.
            attn_selector_config: What the layer needs.
            num_heads: Heads of the layer.

        Returns:
            The class by name.

        Raises:
            NotImplementedError: The layer needs what the attention lacks; the message names it.
        """
        from neuron_tools.frontends.vllm_platform.attention import PagedAttentionBackend

        needs = attn_selector_config._asdict()
        _refuse(PagedAttentionBackend.validate_configuration(**needs, device_capability=None))
        return f"{_PACKAGE}.attention.PagedAttentionBackend"

    @classmethod
    def check_runner_kv_caches_multi_layer(cls) -> None:
        """Layers of two models may have the same number: one of them drafts."""

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """The device's name."""
        return str(torch.neuron.get_device_name(device_id))

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Bytes of HBM."""
        return int(torch.neuron.get_device_properties(device_id).total_memory)

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Bytes that tensors take."""
        return float(torch.neuron.memory_allocated(device))

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Make a NeuronCore the current one."""
        torch.neuron.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Seed every core's generator."""
        torch.neuron.manual_seed_all(seed)

    @classmethod
    def inference_mode(cls) -> Any:
        """A context without gradients."""
        return torch.no_grad()

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Every dtype that vLLM takes is here."""

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """The host's memory is copied from as it is."""
        return False

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """Collectives of PyTorch's process group."""
        return "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"

    @classmethod
    def get_punica_wrapper(cls) -> str:
        """LoRA adapters as dense products."""
        return f"{_PACKAGE}.adapters.NeuronPunicaWrapper"

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        """Processors that a device shows."""
        return int(torch.neuron.get_device_properties(device_id).multi_processor_count)


def _give_time_to_end(vllm_config: Any) -> None:
    """Let servers, other engines' workers, and engines that end with the script write their profiles."""
    from vllm.v1.engine import utils

    vllm_config.shutdown_timeout = max(vllm_config.shutdown_timeout, _GRACE_S)
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", str(_GRACE_S))
    if not isinstance(utils.shutdown, partial):  # its own default is 5 s, and no setting changes it
        utils.shutdown = partial(utils.shutdown, timeout=_GRACE_S)
    after_import("vllm.v1.engine.async_llm", _end_servers_in_order)


def _end_servers_in_order() -> None:
    from vllm.utils.async_utils import cancel_task_threadsafe
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.core_client import BackgroundResources

    stop_reader_first(AsyncLLM, BackgroundResources, cancel_task_threadsafe)


def _asked_in_vain(vllm_config: Any) -> Iterable[str]:
    """What the settings alone show to be missing; each layer's attention is looked at when it is made."""
    from neuron_tools.frontends.vllm_platform.attention import PagedAttentionBackend

    model, cache, drafts = vllm_config.model_config, vllm_config.cache_config, vllm_config.speculative_config
    if model is not None and model.use_mla:
        yield "MLA not supported"
    if cache is not None and not PagedAttentionBackend.supports_kv_cache_dtype(cache.cache_dtype):
        yield f"kv_cache_dtype {cache.cache_dtype} not supported"
    if drafts is not None and drafts.method not in _DRAFTS:
        yield f"drafts by {drafts.method} not supported, only by {', '.join(_DRAFTS)}"


def _refuse(reasons: Iterable[str]) -> None:
    """Raise where there is a reason; reasons are in vLLM's words."""
    if listed := ", ".join(reasons):
        raise NotImplementedError(
            f"vLLM's platform neuron cannot serve this configuration ({listed}): change it, or leave the "
            "device out with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
        )
