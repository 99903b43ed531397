"""Models of pictures and sound: ViT and Whisper from `transformers`, a ResNet and a U-Net of our own."""

from __future__ import annotations

import torch
import transformers
from torch import nn
from torch.nn import functional

from benchmarks.zoo.case import Inputs

CLASSES = 10
BATCH = 2


def vit() -> nn.Module:
    """Patches of a picture through a transformer encoder."""
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32,
        patch_size=8, num_labels=CLASSES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def pictures() -> Inputs:
    """`pixel_values` float32 [batch, 3, 32, 32] and `labels` int64 [batch]."""
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32), "labels": torch.randint(CLASSES, (BATCH,))}


def whisper() -> nn.Module:
    """Convolutions and an encoder over a spectrogram, a decoder over text."""
    config = transformers.WhisperConfig(
        vocab_size=128, num_mel_bins=16, d_model=64, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
        max_source_positions=32, max_target_positions=32, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None, use_cache=False,
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config)


def spectrograms() -> Inputs:
    """`input_features` float32 [batch, mel bins, frames] and `labels` int64 [batch, tokens]."""
    return {"input_features": torch.randn(BATCH, 16, 64), "labels": torch.randint(3, 128, (BATCH, 12))}


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions with batch norm, and a way around them (He et al., 2015)."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        same = stride == 1 and channels == outputs
        shortcut = [nn.Conv2d(channels, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)]
        self.shortcut = nn.Identity() if same else nn.Sequential(*shortcut)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.first_norm(self.first(data)))
        return functional.relu(self.second_norm(self.second(hidden)) + self.shortcut(data))


class ResNet(nn.Module):
    """A residual network of three stages."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.stages = nn.Sequential(
            ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2)
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.head(self.pool(self.stages(self.stem(pixel_values))).flatten(1))
        return functional.cross_entropy(logits, labels), logits


class TimeBlock(nn.Module):
    """Group norm, SiLU and a convolution, shifted by an embedding of the diffusion step."""

    def __init__(self, channels: int, outputs: int, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.convolution = nn.Conv2d(channels, outputs, 3, padding=1)
        self.time = nn.Linear(width, outputs)
        self.around = nn.Conv2d(channels, outputs, 1)

    def forward(self, data: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        hidden = self.convolution(functional.silu(self.norm(data))) + self.time(time)[:, :, None, None]
        return hidden + self.around(data)


class PixelAttention(nn.Module):
    """Self-attention among the pixels of a picture."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.attention = nn.MultiheadAttention(channels, 4, batch_first=True)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        pixels = self.norm(data).flatten(2).transpose(1, 2)
        attended, _ = self.attention(pixels, pixels, pixels, need_weights=False)
        return data + attended.transpose(1, 2).reshape(data.shape)


class DiffusionUNet(nn.Module):
    """Predicts the noise in a picture (Ho et al., 2020): down, attention, up with skip connections."""

    def __init__(self, channels: int = 16, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.down = TimeBlock(channels, channels, width)
        self.shrink = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.middle = TimeBlock(2 * channels, 2 * channels, width)
        self.attention = PixelAttention(2 * channels)
        self.grow = nn.ConvTranspose2d(2 * channels, channels, 4, 2, 1)
        self.up = TimeBlock(2 * channels, channels, width)
        self.smooth = nn.Upsample(scale_factor=2, mode="nearest")
        self.leave = nn.Conv2d(channels, 3, 3, 2, 1)

    def forward(
        self, noisy: torch.Tensor, step: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        time = self.time(self._embedding(step))
        entered = self.enter(noisy)
        kept = self.down(entered, time)
        low = self.attention(self.middle(self.shrink(kept), time))
        up = self.up(torch.cat([self.grow(low), kept], 1), time)
        predicted = self.leave(self.smooth(up))
        return functional.mse_loss(predicted, noise), predicted

    def _embedding(self, step: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of the step at geometrically spaced frequencies."""
        half = self.width // 2
        frequencies = torch.exp(-9.2 * torch.arange(half, device=step.device) / half)
        angles = step[:, None].float() * frequencies
        return torch.cat([angles.sin(), angles.cos()], 1).to(self.enter.weight.dtype)


def noisy_pictures() -> Inputs:
    """`noisy` and `noise` float32 [batch, 3, 16, 16], `step` int64 [batch]."""
    noise = torch.randn(BATCH, 3, 16, 16)
    return {
        "noisy": torch.randn(BATCH, 3, 16, 16) + noise,
        "step": torch.randint(1000, (BATCH,)),
        "noise": noise,
    }
