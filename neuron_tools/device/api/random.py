"""Random state of the NeuronCores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import torch

from neuron_tools.device import native
from neuron_tools.device.api.devices import DeviceLike, current_device, device_count, device_index


class _Generators(Sequence[torch.Generator]):
    """The default generator of each device, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[int, torch.Generator] = {}

    def __len__(self) -> int:
        return device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> list[torch.Generator]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | list[torch.Generator]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"There is no device neuron:{index}.")
        index %= len(self)
        if index not in self._made:
            self._made[index] = native.core().default_generator(index)
        return self._made[index]

    def __iter__(self) -> Iterator[torch.Generator]:
        return (self[i] for i in range(len(self)))


default_generators = _Generators()


def _is_in_bad_fork() -> bool:
    # Device memory is host memory: a forked child can go on using it.
    return False


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device from the system's entropy."""
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seeds every device with one number from the system's entropy."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    """The current device's seed."""
    return int(default_generators[current_device()].initial_seed())


def get_rng_state(device: DeviceLike = "neuron") -> torch.Tensor:
    """A device's random state: uint8 CPU tensor of shape [16], the seed and the offset."""
    return default_generators[device_index(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "neuron") -> None:
    """Sets a device's random state to one that `get_rng_state` gave."""
    default_generators[device_index(device)].set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The random state of every device."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the random state of every device."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
