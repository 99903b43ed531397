"""Prints what is added to the token of each embedding lookup of a step before any request has set it."""

import torch

from neuron_tools.frontends.vllm_platform.adapters import NeuronPunicaWrapper

torch.use_deterministic_algorithms(True)  # fills uninitialised memory with the largest number
print("offsets", NeuronPunicaWrapper(8, 2, "cpu")._embeddings_indices.tolist())
