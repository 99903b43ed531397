"""vLLM's model runner, with this device's streams and events where it names CUDA's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class NeuronModelRunner(GPUModelRunner):
    """Prepares batches, runs the model and samples, as on a GPU."""

    def __init__(self, vllm_config: Any, device: torch.device) -> None:
        with _streams_of_the_device():
            super().__init__(vllm_config, device)


@contextmanager
def _streams_of_the_device() -> Iterator[None]:
    """While the runner is made: `torch.cuda.Stream`, which it makes by that name, is the device's."""
    stream = torch.cuda.Stream
    torch.cuda.Stream = torch.neuron.Stream
    try:
        yield
    finally:
        torch.cuda.Stream = stream
