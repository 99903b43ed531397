"""Paged attention as PyTorch's operators: tokens go to slots, pages are gathered, attention is one call.

A batch has two parts: requests that add one token (decode), and requests that add several (prefill, whole or
in pieces, also behind a cached prefix). Each part is one batch of equal lengths, padded where they differ:
the chip runs few large instructions, not one small program for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)
from vllm.v1.attention.backends.utils import split_decodes_and_prefills
from vllm.v1.kv_cache_interface import KVCacheLayout

from neuron_tools.frontends.vllm_platform.tracing import traced


class PagedAttentionBackend(AttentionBackend):
    """What vLLM asks to choose and make the parts."""

    forward_includes_kv_cache_update = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float32, torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", "float16", "bfloat16"]

    @staticmethod
    def get_name() -> str:
        """The name of a backend from outside vLLM."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[PagedAttention]:
        """A layer's attention."""
        return PagedAttention

    @staticmethod
    def get_builder_cls() -> type[BatchPartsBuilder]:
        """What the attention of a step is told."""
        return BatchPartsBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        """Pages of any number of tokens."""
        return [MultipleOf(1)]

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[KVCacheLayout, ...]:
        """Token after token: a token's keys and values of all heads are one write."""
        return (KVCacheLayout.LBNHC,)

    @classmethod
    def supports_sliding_window(cls) -> bool:
        """A window is a mask."""
        return True


@dataclass
class BatchPart:
    """Requests whose new tokens are computed together.

    Attributes:
        tokens: Where each new token stands in the batch, (requests, longest) int64; padded with the first.
        places: Where each token of the batch stands in `tokens`, flat, (tokens) int64.
        positions: Each new token's position in its request, (requests, longest) int32; padded with 0.
        pages: The pages of each request, (requests, pages) int32.
        start: The part's first token in the batch.
        end: The end of its tokens.
        block_size: Tokens of a page.
        masks: By window: which keys each new token sees, (requests, 1, longest, keys) bool.
    """

    tokens: torch.Tensor
    places: torch.Tensor
    positions: torch.Tensor
    pages: torch.Tensor
    start: int
    end: int
    block_size: int
    masks: dict[int | None, torch.Tensor] = field(default_factory=dict)

    def mask(self, window: int | None) -> torch.Tensor:
        """Keys up to the token's own, of a window of so many where there is one."""
        found = self.masks.get(window)
        if found is None:
            keys = torch.arange(
                self.pages.shape[1] * self.block_size, dtype=torch.int32, device=self.positions.device
            )
            own = self.positions[:, None, :, None]
            found = keys <= own
            if window is not None:
                found &= keys > own - window
            if not torch.compiler.is_compiling():
                self.masks[window] = found
        return found


@dataclass
class BatchParts:
    """The parts of one step's batch."""

    parts: Sequence[BatchPart]


class BatchPartsBuilder(AttentionMetadataBuilder[BatchParts]):
    """Makes the parts from vLLM's account of the batch, once a step for all layers."""

    reorder_batch_threshold = 1
    _cudagraph_support = AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._block_size = kv_cache_spec.block_size

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> BatchParts:
        """The parts of a batch whose decodes stand first."""
        decodes, _, _, _ = split_decodes_and_prefills(common_attn_metadata)
        # Requests that only fill a graph have no token in vLLM's account, and one here.
        all_starts = np.arange(decodes + 1), common_attn_metadata.query_start_loc_cpu.numpy()[decodes:]
        parts = [
            self._part(common_attn_metadata, first, starts.astype(np.int64))
            for first, starts in zip((0, decodes), all_starts)
            if len(starts) > 1
        ]
        return BatchParts(parts)

    def _part(self, common: Any, first: int, starts: npt.NDArray[np.int64]) -> BatchPart:
        last = first + len(starts) - 1
        lengths = common.seq_lens_cpu_upper_bound.numpy()[first:last].clip(min=1)
        tokens, positions, places = _padded(starts, lengths)
        pages = _bucket(-(-int(lengths.max()) // self._block_size), common.block_table_tensor.shape[1])
        return BatchPart(
            tokens=self._on_device(tokens),
            places=self._on_device(places),
            positions=self._on_device(positions),
            pages=common.block_table_tensor[first:last, :pages],
            start=int(starts[0]),
            end=int(starts[-1]),
            block_size=self._block_size,
        )

    def _on_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


def _padded(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Each request's tokens, their positions, and back: where each token stands in the padded rows."""
    counts = np.diff(starts)
    columns = np.arange(counts.max())
    used = columns < counts[:, None]
    tokens = np.where(used, starts[:-1, None] + columns, starts[:-1, None])
    positions = np.where(used, (lengths - counts)[:, None] + columns, 0).astype(np.int32)
    return tokens, positions, np.flatnonzero(used)


def _bucket(pages: int, most: int) -> int:
    """The next power of two: programs are made for few numbers of pages, not for each."""
    return int(min(1 << max(pages - 1, 0).bit_length(), most))


class PagedAttention(AttentionImpl[BatchParts]):
    """One layer's attention over its pages."""

    def __init__(
        self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None, sliding_window: int | None = None,
        kv_cache_dtype: str = "auto", logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER, kv_sharing_target_layer_name: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        wanted = {
            "ALiBi": alibi_slopes,
            "a soft cap of the logits": logits_soft_cap,
            "attention sinks": options.get("sinks"),
            f"the attention of an {attn_type}": attn_type != AttentionType.DECODER,
        }
        missing = [name for name, value in wanted.items() if value is not None and value is not False]
        if missing:
            raise NotImplementedError(
                f"vLLM's platform neuron has no {' and no '.join(missing)}: serve another model, or leave "
                "the device out by TORCH_DEVICE_BACKEND_AUTOLOAD=0."
            )
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.sliding_window, self.kv_cache_dtype = sliding_window, kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name

    @traced
    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Write the new tokens' keys and values to their slots.

        Args:
            layer: The attention layer.
            key: (tokens, heads, size).
            value: (tokens, heads, size).
            kv_cache: (pages, heads, block size, 2 * size), with the tokens of a page outermost in memory.
            slot_mapping: Each token's slot, (tokens) int64; -1 for one that only fills a graph.
        """
        if torch.compiler.is_compiling():
            slot_mapping = slot_mapping.clamp(min=0)  # of the page that no request has
        slots = kv_cache.transpose(1, 2).flatten(0, 1)
        count = slot_mapping.shape[0]
        slots.index_copy_(0, slot_mapping, torch.cat((key[:count], value[:count]), -1).to(slots.dtype))

    @traced
    def forward(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
        attn_metadata: BatchParts | None, output: torch.Tensor, output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Fill `output` from the queries and the pages; the new keys and values are there already.

        Args:
            layer: The attention layer.
            query: (tokens, heads, size).
            key: (tokens, key heads, size), not read.
            value: (tokens, key heads, size), not read.
            kv_cache: As in `do_kv_cache_update`.
            attn_metadata: The parts of the batch; None fills nothing.
            output: (tokens, heads, size).
            output_scale: Of quantised outputs, which the platform lacks.
            output_block_scale: Likewise.

        Returns:
            `output`.
        """
        for part in attn_metadata.parts if attn_metadata is not None else ():
            output[part.start : part.end] = self._attend(query, kv_cache, part)
        return output

    def _attend(self, query: torch.Tensor, kv_cache: torch.Tensor, part: BatchPart) -> torch.Tensor:
        """(tokens of the part, heads, size)."""
        requests, longest = part.tokens.shape
        group = self.num_heads // self.num_kv_heads
        heads = (self.num_kv_heads, group)
        keys, values = (each.to(query.dtype) for each in self._gathered(kv_cache, part.pages))
        # Heads that share their keys stand beside the tokens: no key is repeated.
        queries = query[part.tokens].unflatten(2, heads).permute(0, 2, 3, 1, 4).flatten(2, 3)
        mask = part.mask(self.sliding_window)
        if longest > 1:
            mask = mask.repeat(1, 1, group, 1)
        attended = torch.nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=self.scale
        )
        rows = attended.unflatten(2, (group, longest)).permute(0, 3, 1, 2, 4).reshape(requests * longest, -1)
        chosen = rows if rows.shape[0] == part.end - part.start else rows[part.places]
        return chosen.unflatten(1, (self.num_heads, self.head_size))

    def _gathered(self, kv_cache: torch.Tensor, pages: torch.Tensor) -> Iterator[torch.Tensor]:
        """Keys and values of each request, (requests, heads, keys, size)."""
        tokens = kv_cache.transpose(1, 2)[pages].flatten(1, 2)
        return (half.transpose(1, 2) for half in tokens.split(self.head_size, dim=-1))
