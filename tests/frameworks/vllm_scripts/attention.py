"""Paged attention of random batches against plain attention of each request: prints the largest difference.

Batches are padded as for compiled steps, and not; requests add one token, several (drafts), or a prompt.
A model that drafts has batches whose lengths only the device knows.
"""

import json
from types import SimpleNamespace

import torch
from vllm.config import CUDAGraphMode

from neuron_tools.frontends.vllm_platform.attention import BatchPartsBuilder, PagedAttention
from neuron_tools.frontends.vllm_platform.groups import power_of_two

BLOCK, PAGES, HEADS, KEY_HEADS, SIZE, MOST = 4, 8, 4, 2, 8, 8


def batch(generator, most_decodes):
    """Tokens that are there already, and new ones, of each request; those that add one stand first."""
    counts = [1] * int(torch.randint(0, most_decodes + 1, (), generator=generator))
    counts += torch.randint(
        2, 9, (int(torch.randint(0, 4, (), generator=generator)),), generator=generator
    ).tolist()
    counts = counts or [5]
    computed = torch.randint(0, PAGES * BLOCK - 9, (len(counts),), generator=generator).tolist()
    return computed, counts


def difference(mode, drafts, is_drafting, computed, counts, generator):
    """Of one batch, in steps of a mode, with so many drafts at most."""
    requests, tokens = len(counts), sum(counts)
    size = power_of_two(tokens) if mode == CUDAGraphMode.FULL else tokens
    rows = min(size, MOST) if mode == CUDAGraphMode.FULL and not is_drafting else requests
    table = torch.zeros(rows, PAGES, dtype=torch.int32)
    table[:requests] = torch.arange(1, requests * PAGES + 1).view(requests, PAGES)
    cache = torch.randn(MOST * PAGES + 1, BLOCK, KEY_HEADS, 2 * SIZE, generator=generator).transpose(1, 2)
    query = torch.randn(size, HEADS, SIZE, generator=generator)
    starts = torch.cumsum(torch.tensor([0, *counts, *[0] * (rows - requests)]), 0)
    lengths = torch.tensor([a + b for a, b in zip(computed, counts)] + [0] * (rows - requests))
    common = SimpleNamespace(
        query_start_loc_cpu=starts,
        num_actual_tokens=tokens if is_drafting else size,
        seq_lens_cpu_upper_bound=lengths + 2 if is_drafting else lengths,
        seq_lens=lengths,
        max_seq_len=int(lengths.max()) + 2,
        block_table_tensor=table,
    )
    build = builder(mode, drafts)
    made = build.build_for_drafting(common, 0) if is_drafting else build.build(0, common)
    output = torch.zeros(size, HEADS, SIZE)
    PagedAttention(HEADS, SIZE, SIZE**-0.5, KEY_HEADS).forward(None, query, query, query, cache, made, output)
    wanted = torch.cat(
        [
            plain(query[start : start + count], cache, table[place], before)
            for place, (start, count, before) in enumerate(zip(starts.tolist(), counts, computed))
        ]
    )
    return float((output[:tokens] - wanted).abs().max())


def builder(mode, drafts):
    """Makes the parts of batches of a server with these settings."""
    compilation = SimpleNamespace(cudagraph_mode=mode, max_cudagraph_capture_size=64)
    speculative = SimpleNamespace(
        num_speculative_tokens=drafts, enforce_eager=False, parallel_drafting=False, method="ngram"
    )
    settings = SimpleNamespace(
        compilation_config=compilation,
        speculative_config=speculative if drafts else None,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        num_speculative_tokens=drafts,
    )
    return BatchPartsBuilder(SimpleNamespace(block_size=BLOCK), [], settings, torch.device("cpu"))


def plain(query, cache, pages, before):
    """Attention of one request's new tokens over all of its tokens."""
    held = cache.transpose(1, 2)[pages.long()].flatten(0, 1)[: before + len(query)]
    keys, values = (
        half.repeat_interleave(HEADS // KEY_HEADS, 1).transpose(0, 1) for half in held.split(SIZE, -1)
    )
    seen = torch.arange(len(held)) <= before + torch.arange(len(query))[:, None]
    return torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1), keys, values, attn_mask=seen
    ).transpose(0, 1)


if __name__ == "__main__":
    generator = torch.Generator().manual_seed(0)
    batches = [batch(generator, MOST - 3) for _ in range(40)] + [([3, 0], [1, 1]), ([0], [7]), ([5], [1])]
    for mode in (CUDAGraphMode.NONE, CUDAGraphMode.FULL):
        found = [
            difference(mode, drafts, is_drafting, *each, generator)
            for drafts, is_drafting in ((0, False), (3, False), (3, True))
            for each in batches
        ]
        print(mode.name, json.dumps(max(found)))
