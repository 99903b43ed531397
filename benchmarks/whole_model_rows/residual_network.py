"""ResNet-50 as torchvision has it: He et al., 2016, arXiv:1512.03385, with the stride in the 3x3."""

from __future__ import annotations

import torch
from torch import Tensor, nn

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""(channels inside a block, blocks, stride of the first)."""
EXPANSION = 4


def normalised(before: int, after: int, size: int, stride: int = 1) -> nn.Sequential:
    """A convolution without bias and its batch norm."""
    convolution = nn.Conv2d(before, after, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1, added to the input."""

    def __init__(self, before: int, inside: int, stride: int) -> None:
        super().__init__()
        after = inside * EXPANSION
        self.first = normalised(before, inside, 1)
        self.second = normalised(inside, inside, 3, stride)
        self.third = normalised(inside, after, 1)
        same = stride == 1 and before == after
        self.shortcut = nn.Identity() if same else normalised(before, after, 1, stride)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (batch, channels, height, width)."""
        inside = torch.relu(self.second(torch.relu(self.first(images))))
        return torch.relu(self.third(inside) + self.shortcut(images))


class ResNet50(nn.Module):
    """Scores of 1,000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(normalised(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, before = [], 64
        for inside, count, stride in STAGES:
            for index in range(count):
                blocks.append(Bottleneck(before, inside, stride if index == 0 else 1))
                before = inside * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(before, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Images of shape (batch, 3, 224, 224)."""
        result: Tensor = self.classes(self.blocks(self.stem(images)).mean((2, 3)))
        return result
