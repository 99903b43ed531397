"""Steps of a model as one execution each, where vLLM would replay a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CUDAGraphMode
from vllm.forward_context import get_forward_context, is_forward_context_available

_MOST_SHAPES = 256
"""Numbers of requests times numbers of pages."""


class CompiledSteps(CUDAGraphWrapper):
    """A model whose steps are compiled where vLLM has graphs: each adds a token to each request.

    A program is made for each number of requests, of which vLLM has few, and each number of pages, which is a
    power of two. Other steps run operator by operator.
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
        with torch._dynamo.config.patch(recompile_limit=_MOST_SHAPES):
            return self._compiled(*arguments, **options)
