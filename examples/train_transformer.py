"""Trains a small GPT on sums that it makes itself, on any device, unchanged.

    python examples/train_transformer.py --device cpu
    neuron-profile capture -- python examples/train_transformer.py --compile

Nothing here knows of the simulated device: PyTorch finds it by itself when `neuron-tools` is installed.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import nn

ALPHABET = "0123456789+=\n"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, width = hidden.shape
        parts = self.query_key_value(hidden).split(width, dim=-1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.projection(attended.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.contract(F.gelu(self.expand(hidden)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden + self.attention(self.attention_norm(hidden))
        return hidden + self.feed_forward(self.feed_forward_norm(hidden))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.token_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def make_text(characters: int, generator: torch.Generator) -> str:
    """Lines of sums, such as "17+5=22"."""
    numbers = torch.randint(0, 100, (characters // 4, 2), generator=generator).tolist()
    return "".join(f"{left}+{right}={left + right}\n" for left, right in numbers)[:characters]


def make_batch(
    data: torch.Tensor, batch: int, length: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and the tokens that follow them, both `[batch, length]`, on the host."""
    starts = torch.randint(0, len(data) - length - 1, (batch,), generator=generator).tolist()
    windows = torch.stack([data[start : start + length + 1] for start in starts])
    return windows[:, :-1], windows[:, 1:]


def train_step(
    model: nn.Module,
    criterion: nn.Module,
    optimizer: torch.optim.Optimizer,
    tokens: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    logits = model(tokens)
    loss = criterion(logits.flatten(0, 1).float(), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def default_device() -> str:
    neuron = getattr(torch, "neuron", None)
    return "neuron" if neuron is not None and neuron.is_available() else "cpu"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small GPT on sums that it makes itself.")
    parser.add_argument("--device", default=default_device(), help="cpu or neuron [neuron if available]")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the weights [float32]")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    data = torch.tensor([ALPHABET.index(character) for character in make_text(20_000, generator)])

    shape = (arguments.length, arguments.width, arguments.heads, arguments.layers)
    model = Transformer(len(ALPHABET), *shape).to(arguments.device, DTYPES[arguments.dtype])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    step_model = torch.compile(model) if arguments.compile else model
    for step in range(arguments.steps):
        tokens, targets = make_batch(data, arguments.batch, arguments.length, generator)
        tokens, targets = tokens.to(arguments.device), targets.to(arguments.device)
        loss = train_step(step_model, criterion, optimizer, tokens, targets)
        print(f"step {step}  loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
