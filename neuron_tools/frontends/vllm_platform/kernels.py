"""PyTorch's operators in place of the Triton kernels that vLLM launches while it prepares and samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad
from vllm import _custom_ops
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
from vllm.triton_utils.dispatcher import KernelOverride
from vllm.v1.sample import rejection_sampler
from vllm.v1.spec_decode import utils as spec_decode
from vllm.v1.worker import block_table

from neuron_tools.frontends.vllm_platform import drafting, experts
from neuron_tools.frontends.vllm_platform.owners import owners_of


def install() -> None:
    """Replace vLLM's kernels for this process; calling it again does nothing."""
    replacements: tuple[tuple[Any, Callable[..., None]], ...] = (
        (block_table._COMPUTE_SLOT_MAPPING_KERNEL, map_slots),
        (rejection_sampler._expand, expand),
        (rejection_sampler._rejection_greedy_sample, accept_greedily),
        (rejection_sampler._rejection_random_sample, accept_at_random),
        (rejection_sampler._sample_recovered_tokens, recover),
        (spec_decode._eagle_prepare_next_token_padded, drafting.choose_next),
        (spec_decode._eagle_prepare_inputs_padded, drafting.find_last),
        (spec_decode._eagle_step_slot_mapping_metadata, drafting.advance),
        (spec_decode._copy_and_expand_eagle_inputs, drafting.insert_next),
    )
    for launcher, function in replacements:
        if not isinstance(launcher.kernel, KernelOverride):
            launcher.kernel = KernelOverride(launcher.kernel, function)
    _custom_ops.topk_softmax, _custom_ops.topk_sigmoid = experts.choose_by_softmax, experts.choose_by_sigmoid
    MoERunner._select_forward = experts.forward_of


def map_slots(
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
        parallel_options: Of context parallelism, which the platform lacks.
    """
    requests = owners_of(query_start_loc[1:], num_tokens)
    positions = positions[:num_tokens]
    pages = block_table[requests, positions // block_size]
    slots[:num_tokens] = pages * block_size + positions % block_size


def expand(
    output: torch.Tensor, values: torch.Tensor, ends: torch.Tensor, replaced: int, replacement: int,
    *sizes: int,
) -> None:  # fmt: skip
    """Fill `output` (tokens) with the value of each token's request, one number for another.

    Args:
        output: What is filled.
        values: One for each request.
        ends: Where each request's tokens end, (requests) int32.
        replaced: The number that is replaced.
        replacement: What stands in its place.
        sizes: Of the kernel's blocks.
    """
    chosen = torch.where(values == replaced, replacement, values)
    output.copy_(chosen[owners_of(ends, output.shape[0])])


def accept_greedily(
    output: torch.Tensor, ends: torch.Tensor, drafts: torch.Tensor, best: torch.Tensor,
    bonus: torch.Tensor, is_greedy: torch.Tensor | None, max_drafts: int, uniform: torch.Tensor | None,
    rates: torch.Tensor | None,
    *constants: bool,
) -> None:  # fmt: skip
    """Accept drafts up to the first that is not the model's best token, which takes its place.

    Args:
        output: What is filled, (requests, max_drafts + 1) int32.
        ends: Where each request's drafts end, (requests) int32.
        drafts: (tokens) int32.
        best: The model's best token at each draft, (tokens) int64.
        bonus: The token after the drafts where all are accepted, (requests, 1).
        is_greedy: Which requests are sampled so; None: all.
        max_drafts: The most drafts of a request.
        uniform: Of a trial with made-up rates of acceptance, which the platform lacks.
        rates: Likewise.
        constants: Of the kernel.

    Raises:
        NotImplementedError: There are made-up rates of acceptance.
    """
    _refuse_trial(rates)
    _write(output, ends, bonus, drafts == best, best, is_greedy)


def accept_at_random(
    output: torch.Tensor, ends: torch.Tensor, drafts: torch.Tensor, draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor, bonus: torch.Tensor, recovered: torch.Tensor, uniform: torch.Tensor,
    is_greedy: torch.Tensor, max_drafts: int, vocabulary: int, rates: torch.Tensor | None, *constants: bool,
) -> None:  # fmt: skip
    """Accept drafts as often as the model would choose them, up to one whose place the recovered token takes.

    Args:
        output: What is filled, (requests, max_drafts + 1) int32.
        ends: Where each request's drafts end, (requests) int32.
        drafts: (tokens) int32; -1 is never accepted.
        draft_probs: How probable each draft's model found it, (tokens, vocabulary); None: certain.
        target_probs: How probable the model finds each token there, (tokens, vocabulary).
        bonus: The token after the drafts where all are accepted, (requests, 1).
        recovered: What takes a draft's place, (tokens) int32.
        uniform: Random numbers, (tokens) in [0, 1).
        is_greedy: Which requests are not sampled so.
        max_drafts: The most drafts of a request.
        vocabulary: Tokens that there are.
        rates: Of a trial with made-up rates of acceptance, which the platform lacks.
        constants: Of the kernel.

    Raises:
        NotImplementedError: There are made-up rates of acceptance.
    """
    _refuse_trial(rates)
    column = drafts.clamp(min=0).long()[:, None]
    target = target_probs.gather(1, column)[:, 0]
    draft = 1.0 if draft_probs is None else draft_probs.gather(1, column)[:, 0]
    accepted = (drafts >= 0) & (target > 0) & (target >= uniform * draft)
    _write(output, ends, bonus, accepted, torch.where(accepted, drafts, recovered), ~is_greedy)


def recover(
    output: torch.Tensor, ends: torch.Tensor, drafts: torch.Tensor, draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor, inverse: torch.Tensor, *sizes: int,
) -> None:  # fmt: skip
    """Fill `output` (tokens) with a token drawn from what the model has more of than the draft's model.

    Args:
        output: What is filled.
        ends: Where each request's drafts end, (requests) int32.
        drafts: (tokens) int32.
        draft_probs: As in `accept_at_random`.
        target_probs: Likewise.
        inverse: Reciprocals of exponential random numbers, (requests, vocabulary).
        sizes: Of the kernel's blocks.
    """
    if draft_probs is None:
        left = target_probs.scatter(1, drafts.clamp(min=0).long()[:, None], 0.0)
    else:
        left = (target_probs - draft_probs).clamp(min=0)
    output.copy_((left * inverse[owners_of(ends, drafts.shape[0])]).argmax(1))


def _write(
    output: torch.Tensor, ends: torch.Tensor, bonus: torch.Tensor, accepted: torch.Tensor,
    tokens: torch.Tensor, rows: torch.Tensor | None,
) -> None:  # fmt: skip
    """Write each request's tokens up to the first that is not accepted, and the bonus behind all that are."""
    counts = ends.diff(prepend=ends.new_zeros(1))[:, None]
    columns = torch.arange(output.shape[1], device=output.device)
    places = (ends[:, None] - counts + columns).clamp(max=tokens.shape[0])
    accepted, tokens = (pad(each, (0, 1)) for each in (accepted, tokens))  # a batch may have no drafts at all
    run = (accepted[places] & (columns < counts)).to(torch.int32).cumprod(1).sum(1, keepdim=True)
    chosen = torch.where(
        columns < counts, tokens[places].to(output.dtype), bonus.view(-1, 1).to(output.dtype)
    )
    written = (columns <= run) & (columns <= counts)
    if rows is not None:
        written &= rows[:, None]
    output.copy_(torch.where(written, chosen, output))


def _refuse_trial(rates: torch.Tensor | None) -> None:
    if rates is not None:
        raise NotImplementedError(
            "vLLM's platform neuron accepts drafts by the model, not by made-up rates: leave out "
            "the rates of acceptance from the speculative configuration."
        )
