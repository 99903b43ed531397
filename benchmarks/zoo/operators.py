"""Models of what the others do not use: spectra, CTC, experts by grouped products, choices by value."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.case import Inputs

SAMPLES, FRAME, LETTERS = 1024, 64, 12
EXPERTS, CHOSEN = 4, 2


class SpeechNetwork(nn.Module):
    """Letters from a wave: the spectrum of each frame, convolutions over frames, and CTC's loss."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv1d(FRAME // 2 + 1, 64, 3, padding=1)
        self.pool = nn.MaxPool1d(3, 1, 1)
        self.letters = nn.Linear(64, LETTERS)

    def forward(self, wave: torch.Tensor, text: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and the log probability of each letter, (frames, batch, LETTERS)."""
        spectrum = torch.fft.rfft(wave.float().unflatten(1, (-1, FRAME))).abs().log1p().to(wave.dtype)
        found = self.pool(functional.gelu(self.features(spectrum.transpose(1, 2))))
        logits = self.letters(found.permute(2, 0, 1)).log_softmax(-1, torch.float32)
        frames, batch = logits.shape[:2]
        lengths = torch.full((batch,), frames), torch.full((batch,), text.shape[1])
        return functional.ctc_loss(logits, text, *lengths), logits


def waves() -> Inputs:
    """Noise, and texts without the blank."""
    return {"wave": torch.randn(4, SAMPLES), "text": torch.randint(1, LETTERS, (4, 5))}


class ExpertNetwork(nn.Module):
    """Each token goes to the experts that score highest, all of an expert in one product."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.router = nn.Linear(width, EXPERTS)
        self.weights = nn.Parameter(torch.randn(EXPERTS, width, width) / width**0.5)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and the mixed outputs, (tokens, width)."""
        share, expert = self.router(tokens).softmax(-1).topk(CHOSEN)
        by_expert, order = expert.flatten().sort(stable=True)
        ends = torch.searchsorted(by_expert, torch.arange(EXPERTS, device=tokens.device), right=True)
        rows = tokens.index_select(0, order // CHOSEN)
        found = torch._grouped_mm(rows.bfloat16(), self.weights.bfloat16(), offs=ends.int())
        mixed = torch.zeros_like(tokens).index_add(
            0, order // CHOSEN, found.to(tokens.dtype) * share.flatten()[order, None]
        )
        return mixed.square().mean(), mixed


def token_rows() -> Inputs:
    """Embedded tokens."""
    return {"tokens": torch.randn(128, 64)}


class PickingNetwork(nn.Module):
    """Overlapping pools, transposed convolutions in groups, gathers, and a loss over what a mask chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.up = nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1, groups=4)

    def forward(
        self, pictures: torch.Tensor, places: torch.Tensor, is_known: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and the features at the places, (batch, channels, places)."""
        features = self.up(self.pool(self.down(pictures).relu())).flatten(2)
        found = features.gather(2, places[:, None].expand(-1, features.shape[1], -1))
        return found.masked_select(is_known[:, None]).square().mean(), found


def pictures_with_places() -> Inputs:
    """Pictures, places to look at, and which of them count."""
    return {
        "pictures": torch.randn(2, 3, 32, 32),
        "places": torch.randint(0, 256, (2, 20)),
        "is_known": torch.rand(2, 20) > 0.3,
    }
