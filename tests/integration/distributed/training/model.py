"""A small transformer, its data, and its training in one process, which the schemes are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH, SEQUENCE, WIDTH, HEADS, VOCABULARY = 3, 8, 8, 16, 4, 32
BLOCKS = 2
Tensors = dict[str, torch.Tensor]
Named = Callable[[], Iterable[tuple[str, torch.Tensor]]]


@dataclass(frozen=True, slots=True)
class Training:
    """What a training came to; rank by rank it may know some of the parameters only.

    Attributes:
        losses: Of each step, over the whole batch.
        gradients: Of each step, before the optimizer.
        parameters: After the last step.
    """

    losses: list[float]
    gradients: list[Tensors]
    parameters: Tensors


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            each(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, blocks: int = BLOCKS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


def make_model(blocks: int = BLOCKS) -> Model:
    torch.manual_seed(7)
    return Model(blocks)


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def optimizer_of(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    # One by one: PyTorch's grouped form takes no mix of tensors and DTensors.
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)


@cache
def reference(blocks: int = BLOCKS) -> Training:
    """The training in this process, on the host."""
    model = make_model(blocks)
    optimizer = optimizer_of(model.parameters())
    losses, gradients = [], []
    for tokens, targets in batches():
        loss = loss_of(model(tokens), targets)
        loss.backward()
        gradients.append(gradients_of(model.named_parameters()))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return Training(losses, gradients, whole(model.named_parameters()))


def mine(batch: torch.Tensor) -> torch.Tensor:
    """This rank's part of a batch, on its device."""
    return batch.chunk(dist.get_world_size())[dist.get_rank()].to("neuron")


def everything(batch: torch.Tensor) -> torch.Tensor:
    return batch.to("neuron")


def train(model: nn.Module, parts: Callable[[torch.Tensor], torch.Tensor], named: Named) -> Training:
    """Train on this rank's parts of the batches.

    Args:
        named: The parameters by the names that they have in one process.
    """
    optimizer = optimizer_of(model.parameters())
    losses, gradients = [], []
    for tokens, targets in batches():
        loss = loss_of(model(parts(tokens)), parts(targets))
        loss.backward()
        gradients.append(gradients_of(named()))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(loss.detach()))
    return Training(losses, gradients, whole(named()))


def mean(loss: torch.Tensor) -> float:
    if hasattr(loss, "full_tensor"):
        return float(loss.full_tensor())
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    return float(loss)


def whole(named: Iterable[tuple[str, torch.Tensor]]) -> Tensors:
    """Copies on the host, of what is split put together."""
    return {clean(name): _whole(tensor.detach()).cpu().clone() for name, tensor in named}


def gradients_of(named: Iterable[tuple[str, torch.Tensor]]) -> Tensors:
    return whole((name, each.grad) for name, each in named if each.grad is not None)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def clean(name: str) -> str:
    """A parameter's name without what wrappers put into it."""
    for part in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.", "parametrizations."):
        name = name.replace(part, "")
    return name.removeprefix("module.").removesuffix(".original")
