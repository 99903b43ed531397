"""Models of sequences and graphs: an LSTM forecaster and a graph network that passes messages."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.case import Inputs

NODES, EDGES, FEATURES, CLASSES = 48, 160, 16, 5


class Forecaster(nn.Module):
    """A two-layer LSTM that predicts the next value of a series."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, series: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, _ = self.lstm(series[:, :-1])
        predicted = self.head(hidden)
        return functional.mse_loss(predicted, series[:, 1:]), predicted


def series() -> Inputs:
    """`series` float32 [batch, length, 1]: sines of random phase."""
    time = torch.arange(13) * 0.3
    return {"series": torch.sin(time + 6.28 * torch.rand(4, 1))[..., None]}


class Convolution(nn.Module):
    """Each node takes the mean of its neighbours' messages (Hamilton et al., GraphSAGE, 2017)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.message = nn.Linear(inputs, outputs, bias=False)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = self.message(nodes)[source]
        total = torch.zeros_like(messages[: nodes.shape[0]]).index_add(0, target, messages)
        count = nodes.new_zeros(nodes.shape[0]).scatter_add(
            0, target, torch.ones_like(target, dtype=nodes.dtype)
        )
        return self.own(nodes) + total / count.clamp(min=1)[:, None]


class Attention(nn.Module):
    """Messages weighed by a softmax over each node's incoming edges (Veličković et al., 2018)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, outputs)
        self.score = nn.Linear(2 * outputs, 1)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        hidden = self.project(nodes)
        score = functional.leaky_relu(self.score(torch.cat([hidden[source], hidden[target]], 1)))[:, 0]
        largest = hidden.new_full((nodes.shape[0],), -1e9)
        largest = largest.scatter_reduce(0, target, score.detach(), "amax")
        weight = torch.exp(score - largest[target])
        total = hidden.new_zeros(nodes.shape[0]).index_add(0, target, weight)
        weighed = hidden[source] * (weight / total[target])[:, None]
        return torch.zeros_like(hidden).index_add(0, target, weighed)


class GraphNetwork(nn.Module):
    """Classifies the nodes of a graph."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.convolution = Convolution(FEATURES, width)
        self.attention = Attention(width, width)
        self.head = nn.Linear(width, CLASSES)

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = functional.relu(self.convolution(nodes, edges))
        logits = self.head(functional.elu(self.attention(hidden, edges)))
        return functional.cross_entropy(logits, labels), logits


def graph() -> Inputs:
    """`nodes` float32 [nodes, features], `edges` int64 [2, edges], `labels` int64 [nodes]."""
    loops = torch.arange(NODES).repeat(2, 1)
    return {
        "nodes": torch.randn(NODES, FEATURES),
        "edges": torch.cat([torch.randint(NODES, (2, EDGES)), loops], 1),
        "labels": torch.randint(CLASSES, (NODES,)),
    }
