"""Paged attention as PyTorch's operators: tokens go to slots, pages are gathered, attention is one call.

A batch has two parts: requests that decode (a token each, and drafts behind it), and requests that add more
(prefill, whole or in pieces, also behind a cached prefix). Each part is one batch of equal lengths, padded
where they differ: the chip runs few large instructions, not one small program for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from vllm.config import CUDAGraphMode
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)
from vllm.v1.kv_cache_interface import KVCacheLayout

from neuron_tools.frontends.vllm_platform.groups import (
    Group,
    count_decodes,
    places_of,
    power_of_two,
    rows_of,
    split,
)
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
        tokens: Where each new token stands in the batch, (requests, longest) int64, padded with the first;
            None where they are the batch's first tokens in order.
        positions: Each new token's position in its request, (requests, longest) int32; padded with 0.
        pages: The pages of requests, (rows, pages) int32.
        rows: The row of each request in `pages`, (requests) int64; None where they are in order.
        block_size: Tokens of a page.
        masks: By window: which keys each new token sees, (requests, 1, longest, keys) bool.
    """

    tokens: torch.Tensor | None
    positions: torch.Tensor
    pages: torch.Tensor
    rows: torch.Tensor | None
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
    """The parts of one step's batch.

    Attributes:
        parts: Requests that decode, and requests that add more tokens than these.
        places: Where each token of the batch stands among those of the parts one after another, (tokens)
            int64; None where they are in order.
    """

    parts: Sequence[BatchPart]
    places: torch.Tensor | None


class BatchPartsBuilder(AttentionMetadataBuilder[BatchParts]):
    """Makes the parts from vLLM's account of the batch, once a step for all layers.

    Steps that are compiled have few shapes: a part has a power of two of requests, of tokens of each and of
    pages, and what fills them up is not read. Decode alone has as many requests as vLLM's graph; with drafts
    each request has as many tokens as the most drafts make, though it may have fewer drafts.
    """

    _cudagraph_support = AttentionCGSupport.ALWAYS

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True)
        self._longest_decode: int = self.reorder_batch_threshold or 1
        self._block_size = kv_cache_spec.block_size
        self._compilation, self._drafts = vllm_config.compilation_config, vllm_config.speculative_config

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> BatchParts:
        """The parts of a batch whose decodes stand first."""
        starts, lengths = _on_host(common_attn_metadata)
        decodes = count_decodes(starts, self._longest_decode)
        graphs = self._compilation.cudagraph_mode
        mode = graphs.decode_mode() if decodes == len(lengths) else graphs.mixed_mode()
        size = common_attn_metadata.num_actual_tokens if mode == CUDAGraphMode.FULL else None
        groups = split(starts, lengths, decodes, self._longest_decode, size)
        return self._parts(groups, common_attn_metadata.block_table_tensor, size)

    def build_for_drafting(self, common_attn_metadata: Any, draft_index: int) -> BatchParts:
        """The parts of a batch of the model that drafts, whose exact lengths only the device knows.

        Args:
            common_attn_metadata: vLLM's account, not filled up to a graph's size.
            draft_index: Which draft of each request is made.
        """
        longest = self._longest_decode + 1  # some of these models are given the next token beside
        starts, _ = _on_host(common_attn_metadata)
        table, lengths = common_attn_metadata.block_table_tensor, common_attn_metadata.seq_lens
        most = np.full(len(table), common_attn_metadata.max_seq_len)
        size = self._drafting_size(common_attn_metadata.num_actual_tokens)
        if size is not None and len(table) != power_of_two(len(table)):
            rows = self._on_device(rows_of(0, power_of_two(len(table)), len(table)))
            table, lengths = table[rows], lengths[rows]
        groups = split(starts, most, count_decodes(starts, longest), longest, size)
        return self._parts(groups, table, size, lengths)

    def _drafting_size(self, tokens: int) -> int | None:
        """Tokens of a compiled step of the model that drafts; None where it is not compiled."""
        most = self._compilation.max_cudagraph_capture_size or 0
        has_graphs = self._compilation.cudagraph_mode.mixed_mode() == CUDAGraphMode.FULL
        is_compiled = has_graphs and not self._drafts.enforce_eager and tokens <= most
        return min(power_of_two(tokens), most) if is_compiled else None

    def _parts(
        self,
        groups: Sequence[Group],
        table: torch.Tensor,
        size: int | None,
        exact: torch.Tensor | None = None,
    ) -> BatchParts:
        """The parts; with exact lengths on the device, (rows of the table), where there are such."""
        parts = [self._part(group, table, size, exact) for group in groups]
        tokens = sum(int(group.counts.sum()) for group in groups) if size is None else size
        in_order = len(groups) == 1 and groups[0].is_in_order(tokens) and groups[0].size == tokens
        return BatchParts(parts, None if in_order else self._on_device(places_of(groups, tokens)))

    def _part(
        self, group: Group, table: torch.Tensor, size: int | None, exact: torch.Tensor | None
    ) -> BatchPart:
        requests = group.shape[0]
        pages = min(power_of_two(-(-int(group.lengths.max()) // self._block_size)), table.shape[1])
        # A compiled step gets the rows of all requests, which it has at any number of decodes.
        is_whole = size is None or (group.first == 0 and requests == len(table))
        own = slice(group.first, group.first + requests)
        rows = None if is_whole else self._on_device(rows_of(group.first, requests, len(table)))
        if exact is None:
            positions = self._on_device(group.positions())
        else:
            lengths = exact[own] if rows is None else exact[rows]
            positions = (lengths[:, None] + self._on_device(group.offsets())).clamp(min=0)
        in_order = group.is_in_order(size or int(group.counts.sum()))
        return BatchPart(
            tokens=None if in_order else self._on_device(group.tokens()),
            positions=positions,
            pages=table[own, :pages] if rows is None else table[:, :pages],
            rows=rows,
            block_size=self._block_size,
        )

    def _on_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


def _on_host(common_attn_metadata: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Where the tokens of requests start and end, and how long these are at most.

    What only fills a graph stands behind, without tokens, and is left out.
    """
    starts = common_attn_metadata.query_start_loc_cpu.numpy().astype(np.int64)
    requests = int(np.count_nonzero(np.diff(starts)))
    lengths = common_attn_metadata.seq_lens_cpu_upper_bound.numpy()[:requests].clip(min=1)
    return starts[: requests + 1], lengths


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
            slot_mapping: Each token's slot, (tokens) int64; -1 for one that is not to be written.
        """
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
        if attn_metadata is not None:
            attended = [self._attend(query, kv_cache, part) for part in attn_metadata.parts]
            rows = attended[0] if len(attended) == 1 else torch.cat(attended)
            rows = rows if attn_metadata.places is None else rows[attn_metadata.places]
            output[: rows.shape[0]] = rows.unflatten(1, (self.num_heads, self.head_size))
        return output

    def _attend(self, query: torch.Tensor, kv_cache: torch.Tensor, part: BatchPart) -> torch.Tensor:
        """(tokens of the part, heads * size)."""
        requests, longest = part.positions.shape
        group = self.num_heads // self.num_kv_heads
        heads = (self.num_kv_heads, group)
        pages = part.pages if part.rows is None else part.pages[part.rows]
        keys, values = (each.to(query.dtype) for each in self._gathered(kv_cache, pages))
        if part.tokens is None:
            own = query[: requests * longest].unflatten(0, (requests, longest))
        else:
            own = query[part.tokens]
        # Heads that share their keys stand beside the tokens: no key is repeated.
        queries = own.unflatten(2, heads).permute(0, 2, 3, 1, 4).flatten(2, 3)
        mask = part.mask(self.sliding_window)
        if longest > 1:
            mask = mask.repeat(1, 1, group, 1)
        attended = torch.nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=self.scale
        )
        rows = attended.unflatten(2, (group, longest)).permute(0, 3, 1, 2, 4)
        return rows.reshape(requests * longest, -1)

    def _gathered(self, kv_cache: torch.Tensor, pages: torch.Tensor) -> Iterator[torch.Tensor]:
        """Keys and values of each request, (requests, heads, keys, size)."""
        tokens = kv_cache.transpose(1, 2)[pages].flatten(1, 2)
        return (half.transpose(1, 2) for half in tokens.split(self.head_size, dim=-1))
