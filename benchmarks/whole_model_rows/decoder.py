"""One rank of a Llama under tensor parallelism, as transformers-neuronx lays it out.

Source: github.com/aws-neuron/transformers-neuronx @1ade6d7. Query heads are padded to a multiple of the
ranks, key and value heads repeated up to one a rank (utils.py); the cache is [position, batch, head, 128]
(decoder.py, init_caches) and a step reads a whole bucket of it (bucket.py); scores of the past and of the
new token are separate products (layers/attention.py); two all-reduces a layer. Tokens are embedded and
sampled on the host.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.fake_lowering import lower_fake
from benchmarks.llama import HEAD_SIZE, RootMeanSquare, rotate_half
from neuron_tools.compiler.graph import Rewriter, producers
from neuron_tools.compiler.hlo import Module, Operation
from neuron_tools.frozen import frozen

RANKS = 32
_REDUCED = ("output", "down")
"""Weights whose products are the ranks' parts of a sum."""


@frozen
class Configuration:
    """Sizes of a model, and of what a rank has of it."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    bucket: int
    prompt: int

    @property
    def rank_heads(self) -> int:
        """Query heads of a rank, and heads of its keys and values."""
        return -(-self.heads // RANKS)


CONFIGURATIONS = {
    "llama-3-8b": Configuration(32, 4096, 32, 14336, 128256, 4096, 128),
    "llama-2-13b": Configuration(40, 5120, 40, 13824, 32000, 8192, 4096),
}


class RankLayer(nn.Module):
    """A decoder layer; `qkv`, `gate`, `up` are [in, out], `output` and `down` [out, in], as in the source."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.heads = config.rank_heads
        own, inner = config.rank_heads * HEAD_SIZE, config.inner // RANKS
        self.qkv = nn.Parameter(torch.empty(config.width, 3 * own))
        self.gate = nn.Parameter(torch.empty(config.width, inner))
        self.up = nn.Parameter(torch.empty(config.width, inner))
        self.output = nn.Parameter(torch.empty(config.width, own))
        self.down = nn.Parameter(torch.empty(config.width, inner))
        self.attention_norm = RootMeanSquare(config.width)
        self.feed_forward_norm = RootMeanSquare(config.width)

    def forward(
        self, states: Tensor, cosine: Tensor, sine: Tensor, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States of shape (batch, tokens, width); a cache of shape (positions, batch, heads, 128)."""
        joined = (self.attention_norm(states) @ self.qkv).unflatten(-1, (3, self.heads, HEAD_SIZE))
        query, key, value = joined.unbind(2)
        query = query * cosine + rotate_half(query) * sine
        key = key * cosine + rotate_half(key) * sine
        if keys is None or values is None:
            attended = _prefill(query, key, value)
        else:
            attended = _decode(query, key, value, keys, values)
        states = states + F.linear(attended.flatten(2), self.output)
        normed = self.feed_forward_norm(states)
        states = states + F.linear(F.silu(normed @ self.gate) * (normed @ self.up), self.down)
        return states, key, value


def _prefill(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    heads_first = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(*heads_first, is_causal=True).transpose(1, 2)


def _decode(query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One new token against the cache and itself; softmax in float32."""
    scale = HEAD_SIZE**-0.5
    past = torch.einsum("bthd,sbhd->bhts", query, keys)
    own = (query * key).sum(-1).transpose(1, 2).unsqueeze(-1)
    weights = torch.softmax(torch.cat((past, own), -1).float() * scale, -1).to(query.dtype)
    before, last = weights[..., :-1], weights[..., -1:]
    return torch.einsum("bhts,sbhd->bthd", before, values) + last.transpose(1, 2) * value


class Rank(nn.Module):
    """All layers, and this rank's part of the scores of the last token."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.layers = nn.ModuleList(RankLayer(config) for _ in range(config.layers))
        self.norm = RootMeanSquare(config.width)
        self.head = nn.Parameter(torch.empty(config.width, config.vocabulary // RANKS))

    def forward(self, states: Tensor, cosine: Tensor, sine: Tensor, *cache: Tensor) -> list[Tensor]:
        """Embedded tokens of shape (batch, tokens, width); keys and values of each layer in turn."""
        made: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            keys, values = cache[2 * index : 2 * index + 2] if cache else (None, None)
            states, key, value = layer(states, cosine, sine, keys, values)
            made += [key, value]
        return [self.norm(states[:, -1:]) @ self.head, *made]


def step(name: str, batch: int, *, layers: int, prefill: bool = False) -> Module:
    """The module of one rank, so many layers of it: a token with the bucket cached, or a prompt."""
    config = replace(CONFIGURATIONS[name], layers=layers)
    tokens = config.prompt if prefill else 1
    shape = (config.bucket, batch, config.rank_heads, HEAD_SIZE)

    def arguments() -> tuple[Tensor, ...]:
        rotation = tuple(torch.empty(tokens, 1, HEAD_SIZE) for _ in range(2))
        cache = () if prefill else tuple(torch.empty(shape) for _ in range(2 * config.layers))
        return torch.empty(batch, tokens, config.width), *rotation, *cache

    return _with_all_reduces(lower_fake(lambda: Rank(config), arguments, name))


def _with_all_reduces(module: Module) -> Module:
    """The module with a sum over the ranks behind each product of which a rank has a part."""
    made, rewriter = producers(module), Rewriter(module)
    names = dict(zip(module.parameters, module.parameter_names))
    for operation in module.operations:
        operation = rewriter.renamed(operation)
        rewriter.operations.append(operation)
        if operation.opcode == "dot_general" and _weight(operation, made, names) in _REDUCED:
            part, type_ = operation.results[0], rewriter.type_of(operation.results[0])
            group = {"replica_groups": tuple(range(RANKS)), "replica_groups_shape": (1, RANKS)}
            whole = rewriter.add("all_reduce", (part,), type_, operation, **group)
            rewriter.alias(part, whole)
    return rewriter.finish()


def _weight(operation: Operation, made: dict[int, Operation], names: dict[int, str]) -> str:
    value = operation.operands[1]
    while value in made and made[value].operands:
        value = made[value].operands[0]
    return names.get(value, "").rpartition(".")[2]
