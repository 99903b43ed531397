"""Steps of a model as one execution each, where vLLM would replay a CUDA graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.forward_context import BatchDescriptor, get_forward_context, is_forward_context_available
from vllm.v1.cudagraph_dispatcher import CudagraphDispatcher

from neuron_tools.frontends.vllm_platform.groups import power_of_two


def token_buckets(sizes: Sequence[int], most: int) -> list[int]:
    """The numbers of tokens that steps are compiled for: vLLM's, and powers of two up to the most of a step.

    Args:
        sizes: vLLM's, of steps that add a token to each request.
        most: Tokens of the largest step.
    """
    powers = {1 << exponent for exponent in range(most.bit_length())}
    return sorted({size for size in sizes if size <= most} | powers | {most})


class StepSizes(CudagraphDispatcher):
    """Chooses how many tokens a step is compiled for, of the model or of one that drafts."""

    def __init__(self, vllm_config: Any) -> None:
        super().__init__(vllm_config)
        self._sizes = self.compilation_config.cudagraph_capture_sizes

    def initialize_cudagraph_keys(self, cudagraph_mode: CUDAGraphMode, *arguments: Any) -> None:
        """Take the sizes back that vLLM has made multiples of a decode's tokens where one has drafts.

        Args:
            cudagraph_mode: Which steps have graphs.
            arguments: Tokens of a decode.
        """
        if cudagraph_mode.mixed_mode() != CUDAGraphMode.NONE and self._sizes:
            self.compilation_config.cudagraph_capture_sizes = self._sizes
            self.compilation_config.max_cudagraph_capture_size = self._sizes[-1]
        super().initialize_cudagraph_keys(cudagraph_mode, *arguments)

    def dispatch(
        self, num_tokens: int, uniform_decode: bool = False, *arguments: Any, **options: Any
    ) -> tuple[CUDAGraphMode, BatchDescriptor]:
        """Take a power of two where requests add several tokens: prompts have any length."""
        most = self.compilation_config.max_cudagraph_capture_size or 0
        is_single = uniform_decode and self.uniform_decode_query_len == 1
        if not is_single and self.cudagraph_mode.mixed_mode() != CUDAGraphMode.NONE:
            num_tokens = max(num_tokens, min(power_of_two(num_tokens), most))
        found: tuple[CUDAGraphMode, BatchDescriptor]
        found = super().dispatch(num_tokens, uniform_decode, *arguments, **options)
        return found


class CompiledSteps(CUDAGraphWrapper):
    """A model whose steps are compiled where vLLM has graphs.

    A program is made for each number of tokens, of requests and of pages, of which there are few. Other steps
    run operator by operator.
    """

    def __init__(
        self, runnable: Callable[..., Any], vllm_config: Any, runtime_mode: CUDAGraphMode, **options: Any
    ) -> None:
        super().__init__(runnable, vllm_config, runtime_mode, **options)
        self._compiled = torch.compile(runnable, backend="neuron", dynamic=False)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run a step."""
        is_graph = (
            is_forward_context_available()
            and get_forward_context().cudagraph_runtime_mode == self.runtime_mode
        )
        if not is_graph:
            return self.runnable(*arguments, **options)
        # Past a limit PyTorch would run a new shape operator by operator.
        with torch._dynamo.config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
            return self._compiled(*arguments, **options)
