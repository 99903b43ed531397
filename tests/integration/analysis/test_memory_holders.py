"""Who holds device memory at its peak, in a real capture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import neuron_tools
from neuron_profile.analysis.memory import MemoryUse, measure_memory

ROWS, WIDTH, CLASSES = 64, 96, 10


class Net(torch.nn.Module):
    """Two layers, one of them inside another module."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())
        self.head = torch.nn.Linear(WIDTH, CLASSES)
        self.register_buffer("scale", torch.ones(WIDTH))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Scores."""
        scores: torch.Tensor = self.head(self.body(batch * self.scale))
        return scores


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemoryUse, int]:
    """The memory of three training steps of a model made before them, and the most that was allocated."""
    folder: Path = tmp_path_factory.mktemp("memory")
    net, batch = Net().to("neuron"), torch.rand(ROWS, WIDTH).to("neuron")
    optimizer = torch.optim.Adam(net.parameters())
    torch.neuron.reset_peak_memory_stats()  # type: ignore[attr-defined]
    with neuron_tools.profile(folder / "run.nprof", host_clock="fixed"):
        for _ in range(3):
            net(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    with neuron_tools.open_profile(folder / "run.nprof") as profile:
        return measure_memory(profile), torch.neuron.max_memory_allocated()  # type: ignore[attr-defined]


def test_the_holders_add_up_to_the_peak_that_the_device_saw(made: tuple[MemoryUse, int]) -> None:
    memory, allocated = made
    (peak,) = memory.peaks
    assert peak.peak_bytes == allocated
    assert sum(holder.byte_count for holder in memory.holders) == allocated
    assert sum(row.byte_count for row in memory.held) == allocated


def test_parameters_and_buffers_have_their_names_modules_and_sizes(made: tuple[MemoryUse, int]) -> None:
    named = {
        holder.tensor: (holder.category, holder.layer, holder.byte_count)
        for holder in made[0].holders
        if holder.tensor
    }
    assert named == {
        "Net.body.0.weight": ("parameter", "/Net/body/0", 4 * WIDTH * WIDTH),
        "Net.body.0.bias": ("parameter", "/Net/body/0", 4 * WIDTH),
        "Net.head.weight": ("parameter", "/Net/head", 4 * WIDTH * CLASSES),
        "Net.head.bias": ("parameter", "/Net/head", 4 * CLASSES),
        "Net.scale": ("buffer", "/Net", 4 * WIDTH),
    }


def test_the_optimizers_state_is_held_at_the_line_of_its_step(made: tuple[MemoryUse, int]) -> None:
    memory, _ = made
    held = {row.category: row.byte_count for row in memory.held}
    assert held["optimizer"] >= 2 * held["parameter"]
    lines = {holder.line for holder in memory.holders if holder.category == "optimizer"}
    source = Path(__file__).read_text().splitlines()
    assert [source[line - 1].strip() for line in lines] == ["optimizer.step()"]


def test_activations_and_gradients_are_told_with_their_module(made: tuple[MemoryUse, int]) -> None:
    layers = {holder.layer for holder in made[0].holders if holder.category in ("activation", "gradient")}
    assert layers & {"/Net", "/Net/body/0", "/Net/body/1", "/Net/head"}
