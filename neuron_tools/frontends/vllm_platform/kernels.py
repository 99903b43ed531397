"""PyTorch's operators in place of the Triton kernels that vLLM launches while it prepares and samples."""

from __future__ import annotations

from typing import Any

import torch
from vllm.triton_utils.dispatcher import KernelOverride
from vllm.v1.worker import block_table


def install() -> None:
    """Replace the kernels; harmless the second time."""
    kernel = block_table._COMPUTE_SLOT_MAPPING_KERNEL
    if not isinstance(kernel.kernel, KernelOverride):
        kernel.kernel = KernelOverride(kernel.kernel, slot_mapping)


def slot_mapping(
    num_tokens: int, max_num_tokens: int, query_start_loc: torch.Tensor, positions: torch.Tensor,
    block_table: torch.Tensor, block_table_stride: int, slots: torch.Tensor, block_size: int,
    *parallel_options: Any,
) -> None:  # fmt: skip
    """Fill `slots[:num_tokens]` with each token's place in the pages of its request.

    Args:
        num_tokens: Tokens of the batch.
        max_num_tokens: The length of `slots`.
        query_start_loc: Where each request's tokens start, and the end, (requests + 1) int32.
        positions: Each token's position in its request, (tokens) int64.
        block_table: Each request's pages, (requests, pages) int32.
        block_table_stride: Elements from row to row, which the tensor knows.
        slots: What is filled, (max_num_tokens) int64.
        block_size: Tokens of a page.
        parallel_options: Of context parallelism, which the platform has not.
    """
    tokens = torch.arange(num_tokens, device=positions.device)
    # As many requests have ended at a token as stand before its own.
    requests = (tokens[:, None] >= query_start_loc[None, 1:]).sum(1)
    positions = positions[:num_tokens]
    pages = block_table[requests, positions // block_size]
    slots[:num_tokens] = pages * block_size + positions % block_size
