"""Trains a small residual convolutional network with batch norm to tell stripes of two directions apart."""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm1(self.conv1(images)))
        return F.relu(self.norm2(self.conv2(hidden)) + self.shortcut(images))


class ConvNet(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.stages = nn.Sequential(
            ResidualBlock(channels, channels, stride=1),
            ResidualBlock(channels, 2 * channels, stride=2),
        )
        self.classifier = nn.Linear(2 * channels, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm(self.stem(images)))
        hidden = F.max_pool2d(hidden, 2)
        return self.classifier(self.stages(hidden).mean(dim=(2, 3)))


def make_images(batch: int, size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy stripes `[batch, 3, size, size]`, and 1 where they stand upright, else 0."""
    labels = torch.randint(0, 2, (batch,), generator=generator)
    wave = torch.sin(torch.arange(size) * 1.5)
    upright, level = wave.expand(size, size), wave[:, None].expand(size, size)
    stripes = torch.where(labels[:, None, None] == 1, upright, level)
    return stripes[:, None] + 0.3 * torch.randn(batch, 3, size, size, generator=generator), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="neuron" if hasattr(torch, "neuron") else "cpu")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--channels", type=int, default=16)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = ConvNet(arguments.channels).to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    step_model = torch.compile(model) if arguments.compile else model
    for step in range(arguments.steps):
        images, labels = make_images(arguments.batch, arguments.size, generator)
        logits = step_model(images.to(arguments.device))
        loss = criterion(logits, labels.to(arguments.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}  loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
