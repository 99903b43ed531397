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
        parts: Requests that add one token, and requests that add several.
        places: Where each token of the batch stands among those of the parts one after another, (tokens)
            int64; None where they are in order.
    """

    parts: Sequence[BatchPart]
    places: torch.Tensor | None


class BatchPartsBuilder(AttentionMetadataBuilder[BatchParts]):
    """Makes the parts from vLLM's account of the batch, once a step for all layers.

    Steps that are compiled have few shapes: a part has a power of two of requests, of tokens of each and of
    pages, and what fills them up is not read. Decode alone has as many requests as vLLM's graph.
    """

    reorder_batch_threshold = 1
    _cudagraph_support = AttentionCGSupport.ALWAYS

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._block_size = kv_cache_spec.block_size
        self._graphs = vllm_config.compilation_config.cudagraph_mode

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> BatchParts:
        """The parts of a batch whose decodes stand first."""
        starts = common_attn_metadata.query_start_loc_cpu.numpy().astype(np.int64)
        counts = np.diff(starts)
        counts = counts[: np.count_nonzero(counts)]  # what only fills a graph stands behind, without tokens
        decodes = int(np.argmin(np.append(counts, 0) == 1))
        graphs = self._graphs.decode_mode() if decodes == len(counts) else self._graphs.mixed_mode()
        is_compiled = graphs == CUDAGraphMode.FULL
        size = common_attn_metadata.num_actual_tokens if is_compiled else int(starts[-1])
        lengths = common_attn_metadata.seq_lens_cpu_upper_bound.numpy()[: len(counts)].clip(min=1)
        shapes = _shapes(counts[decodes:], decodes, size if is_compiled else None)
        cuts = ((slice(0, decodes), shapes[0]), (slice(decodes, len(counts)), shapes[1]))
        groups = [
            _Group(cut.start, starts[:-1][cut], counts[cut], lengths[cut], shape)
            for cut, shape in cuts
            if cut.stop > cut.start
        ]
        parts = [self._part(common_attn_metadata, group, size, is_compiled) for group in groups]
        in_order = len(groups) == 1 and groups[0].is_in_order(size) and groups[0].size == size
        return BatchParts(parts, None if in_order else self._on_device(_places(groups, size)))

    def _part(self, common: Any, group: _Group, size: int, is_compiled: bool) -> BatchPart:
        table, requests = common.block_table_tensor, group.shape[0]
        pages = min(power_of_two(-(-int(group.lengths.max()) // self._block_size)), table.shape[1])
        # A compiled step gets the rows of all requests, which it has at any number of decodes.
        is_whole = not is_compiled or (group.first == 0 and requests == len(table))
        rows = np.minimum(group.first + np.arange(requests), len(table) - 1)
        return BatchPart(
            tokens=None if group.is_in_order(size) else self._on_device(group.tokens()),
            positions=self._on_device(group.positions()),
            pages=table[group.first : group.first + requests, :pages] if is_whole else table[:, :pages],
            rows=None if is_whole else self._on_device(rows),
            block_size=self._block_size,
        )

    def _on_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


@dataclass(frozen=True)
class _Group:
    """Requests of one part on the host.

    Attributes:
        first: The place of the first of them in the batch.
        starts: Where each one's tokens start in the batch, (requests) int64.
        counts: How many each has, (requests) int64.
        lengths: Tokens of each up to its last new one, (requests).
        shape: Requests and tokens of each that the part has, no fewer than there are.
    """

    first: int
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    lengths: npt.NDArray[Any]
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        """Tokens of the part."""
        return self.shape[0] * self.shape[1]

    def is_in_order(self, size: int) -> bool:
        """Whether the part's tokens are the first of a batch of that size, one after another."""
        return self.first == 0 and (self.shape[1] == 1 or self.shape == (1, size))

    def tokens(self) -> npt.NDArray[np.int64]:
        """Where each token stands in the batch."""
        return self._filled(self.starts, int(self.starts[0])).astype(np.int64)

    def positions(self) -> npt.NDArray[np.int32]:
        """Each token's position in its request."""
        return self._filled(self.lengths - self.counts, 0).astype(np.int32)

    def used(self) -> npt.NDArray[np.int64]:
        """Where the batch's tokens stand in the part, flat."""
        return np.flatnonzero(self._is_used())

    def _filled(self, begins: npt.NDArray[Any], filling: int) -> npt.NDArray[Any]:
        """Numbers from each request's own on; what fills the part up has another."""
        rows = np.zeros((self.shape[0], 1), np.int64)
        rows[: len(begins), 0] = begins
        return np.where(self._is_used(), rows + np.arange(self.shape[1]), filling)

    def _is_used(self) -> npt.NDArray[np.bool_]:
        counts = np.zeros((self.shape[0], 1), np.int64)
        counts[: len(self.counts), 0] = self.counts
        return np.arange(self.shape[1]) < counts


def _shapes(
    longer: npt.NDArray[np.int64], decodes: int, size: int | None
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Requests and tokens of each, of both parts.

    Args:
        longer: The tokens of each request that adds several.
        decodes: How many requests add one.
        size: Tokens of the compiled step; None for one that is not.
    """
    longest = int(longer.max(initial=1))
    if size is None:
        return (decodes, 1), (len(longer), longest)
    if len(longer) == 0:
        return (size, 1), (0, 1)
    if decodes == 0 and len(longer) == 1:
        return (0, 1), (1, size)
    return (min(power_of_two(decodes), size), 1), (power_of_two(len(longer)), power_of_two(longest))


def _places(groups: Sequence[_Group], size: int) -> npt.NDArray[np.int64]:
    """Where each token of the batch stands in the parts one after another; 0 for what only fills it up."""
    begins = np.cumsum([0, *(group.size for group in groups)])
    used = np.concatenate([begin + group.used() for begin, group in zip(begins, groups)])
    return np.append(used, np.zeros(size - len(used), np.int64))


def power_of_two(number: int) -> int:
    """The least that is no less: programs are made for few numbers, not for each."""
    return 1 << max(number - 1, 0).bit_length() if number else 0


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
