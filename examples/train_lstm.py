"""Trains an LSTM to continue a sum of two sine waves."""

from __future__ import annotations

import argparse

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(series)
        return self.head(hidden)


def make_series(batch: int, length: int, generator: torch.Generator) -> torch.Tensor:
    """Waves `[batch, length + 1, 1]`, each of two random phases."""
    phases = 6.28 * torch.rand(2, batch, 1, generator=generator)
    time = torch.arange(length + 1) * 0.3
    return (torch.sin(time + phases[0]) + 0.5 * torch.sin(2.3 * time + phases[1]))[..., None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="neuron" if hasattr(torch, "neuron") else "cpu")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Forecaster(arguments.width).to(arguments.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()
    step_model = torch.compile(model) if arguments.compile else model
    for step in range(arguments.steps):
        series = make_series(arguments.batch, arguments.length, generator).to(arguments.device)
        loss = criterion(step_model(series[:, :-1]), series[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}  loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
