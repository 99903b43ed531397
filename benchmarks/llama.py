"""A Llama-like decoder in plain PyTorch, as users write it: rotary embeddings, grouped queries, SwiGLU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEAD_SIZE = 128


class RootMeanSquare(nn.Module):
    """x / rms(x) * weight, computed in float32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, states: Tensor) -> Tensor:
        """Normalise the last axis."""
        wide = states.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(states.dtype)


def rotate_half(states: Tensor) -> Tensor:
    """(a, b) -> (-b, a) for the halves of the last axis."""
    first, second = states.chunk(2, -1)
    return torch.cat((-second, first), -1)


class Attention(nn.Module):
    """Causal attention with grouped queries; `cache` holds earlier keys and values when decoding."""

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared = heads, shared
        self.query = nn.Linear(width, heads * HEAD_SIZE, bias=False)
        self.key = nn.Linear(width, shared * HEAD_SIZE, bias=False)
        self.value = nn.Linear(width, shared * HEAD_SIZE, bias=False)
        self.output = nn.Linear(heads * HEAD_SIZE, width, bias=False)

    def forward(
        self, states: Tensor, cosine: Tensor, sine: Tensor, cache: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """States of shape (batch, sequence, width)."""
        query = self._split(self.query(states), self.heads)
        key = self._split(self.key(states), self.shared)
        value = self._split(self.value(states), self.shared)
        query = query * cosine + rotate_half(query) * sine
        key = key * cosine + rotate_half(key) * sine
        if cache is not None:
            key, value = torch.cat((cache[0], key), 2), torch.cat((cache[1], value), 2)
        key, value = self._repeat(key), self._repeat(value)
        result = F.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        joined = result.transpose(1, 2).reshape(states.shape[0], states.shape[1], -1)
        projected: Tensor = self.output(joined)
        return projected

    def _split(self, states: Tensor, heads: int) -> Tensor:
        return states.view(states.shape[0], states.shape[1], heads, HEAD_SIZE).transpose(1, 2)

    def _repeat(self, states: Tensor) -> Tensor:
        groups = self.heads // self.shared
        if groups == 1:
            return states
        batch, heads, length, size = states.shape
        return states[:, :, None].expand(batch, heads, groups, length, size).reshape(batch, -1, length, size)


class FeedForward(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        """States of shape (batch, sequence, width)."""
        result: Tensor = self.down(F.silu(self.gate(states)) * self.up(states))
        return result


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, width: int = 4096, heads: int = 32, shared: int = 32, inner: int = 11008) -> None:
        super().__init__()
        self.attention = Attention(width, heads, shared)
        self.feed_forward = FeedForward(width, inner)
        self.attention_norm = RootMeanSquare(width)
        self.feed_forward_norm = RootMeanSquare(width)

    def forward(
        self, states: Tensor, cosine: Tensor, sine: Tensor, cache: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """States of shape (batch, sequence, width)."""
        states = states + self.attention(self.attention_norm(states), cosine, sine, cache)
        result: Tensor = states + self.feed_forward(self.feed_forward_norm(states))
        return result


class Llama(nn.Module):
    """The 8-billion-parameter configuration by default."""

    def __init__(
        self, layers: int = 32, width: int = 4096, heads: int = 32, shared: int = 8, inner: int = 14336,
        vocabulary: int = 128256,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, shared, inner) for _ in range(layers))
        self.norm = RootMeanSquare(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Scores of the next token for token numbers of shape (batch, sequence)."""
        states = self.embedding(tokens)
        for layer in self.layers:
            states = layer(states, cosine, sine)
        scores: Tensor = self.head(self.norm(states))
        return scores
