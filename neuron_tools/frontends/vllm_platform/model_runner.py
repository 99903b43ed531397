"""vLLM's model runner, with this device's streams and events where it names CUDA's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import torch
from vllm.config import CUDAGraphMode
from vllm.distributed.parallel_state import get_pp_group
from vllm.v1.worker import gpu_model_runner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from neuron_tools.frontends.vllm_platform.graphs import CompiledSteps, StepSizes


class NeuronModelRunner(GPUModelRunner):
    """Prepares batches, runs the model and samples, as on a GPU."""

    def __init__(self, vllm_config: Any, device: torch.device) -> None:
        with _own_streams():
            super().__init__(vllm_config, device)
        self.cudagraph_dispatcher = StepSizes(vllm_config)
        if hasattr(getattr(self, "drafter", None), "cudagraph_dispatcher"):
            self.drafter.cudagraph_dispatcher = StepSizes(vllm_config)

    def load_model(self, *arguments: Any, **options: Any) -> None:
        """Load the model, and have its graphs compiled for this device."""
        with patch.object(gpu_model_runner, "CUDAGraphWrapper", CompiledSteps):
            super().load_model(*arguments, **options)
        drafting = getattr(getattr(self, "drafter", None), "model", None)
        if isinstance(drafting, torch.nn.Module) and self.compilation_config.cudagraph_mode.has_mode(
            CUDAGraphMode.FULL
        ):  # vLLM looks for the model's own class
            compiled = CompiledSteps(drafting.forward, self.vllm_config, CUDAGraphMode.PIECEWISE)
            drafting.forward = compiled
        if not get_pp_group().is_first_rank:  # vLLM makes them in a trial run, which there is none of
            self.intermediate_tensors = self.model.make_empty_intermediate_tensors(
                batch_size=self.max_num_tokens, dtype=self.model_config.dtype, device=self.device
            )

    def _copy_draft_token_ids_to_cpu(self, *arguments: Any, **options: Any) -> None:
        with _own_streams():
            super()._copy_draft_token_ids_to_cpu(*arguments, **options)


def _own_streams() -> AbstractContextManager[Any]:
    """This device's streams under the names of CUDA's."""
    device = torch.neuron
    return patch.multiple(
        torch.cuda, Stream=device.Stream, stream=device.stream, current_stream=device.current_stream
    )
