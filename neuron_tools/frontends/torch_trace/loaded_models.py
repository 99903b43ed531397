"""The traced models of this process, in the order in which they were loaded, and the cores each was given.

A model goes to the least used cores, as AWS's guide to core placement has it: the first to core 0, the second
to core 1. What belongs to one model (pieces between which the CPU works, buckets) stays together.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from weakref import ReferenceType, ref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from neuron_tools.neff.archive import core_count


class Turns:
    """Cores that take calls in turn."""

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores = tuple(cores)
        self._turns = cycle(self.cores)

    def __next__(self) -> int:
        return next(self._turns)


@dataclass(eq=False)
class LoadedModel:
    """A model of which an archive is in memory.

    Attributes:
        modules: What was traced or loaded, weakly.
        artifacts: The memory of its archives, weakly: archives that ran lately stay in memory.
        width: Cores that one call needs; more than one for a NeuronCore Pipeline.
        turns: Cores on which calls begin; none before the first call.
    """

    modules: list[ReferenceType[torch.nn.Module]]
    artifacts: list[StorageWeakRef]
    width: int
    turns: Turns | None = None

    def is_alive(self) -> bool:
        """Whether somebody still holds one of its archives."""
        return not all(artifact.expired() for artifact in self.artifacts)

    def is_used(self) -> bool:
        """Whether somebody still holds one of its modules."""
        return any(module() is not None for module in self.modules)

    def used_cores(self) -> list[int]:
        """The cores that it is loaded on."""
        firsts = () if self.turns is None else self.turns.cores
        return [first + offset for first in firsts for offset in range(self.width)]


class LoadedModels:
    """Gives each model its cores at the first call of any that was loaded after it, or of itself."""

    def __init__(self) -> None:
        self._models: list[LoadedModel] = []
        self._by_memory: dict[int, LoadedModel] = {}
        self._lock = threading.Lock()

    def add(self, models: Sequence[torch.nn.Module], cores: Sequence[int] = ()) -> None:
        """Remember modules as one loaded model, in place of what they were before.

        Args:
            models: Modules that were traced or loaded; those without an archive count for nothing.
            cores: Where it runs; by default the cores that are used least.
        """
        artifacts = [artifact for model in models for artifact in _artifacts(model)]
        if not artifacts:
            return
        width = max(core_count(memoryview(artifact.numpy())) for artifact in artifacts)
        references = [StorageWeakRef(artifact.untyped_storage()) for artifact in artifacts]
        loaded = LoadedModel(
            [ref(model) for model in models], references, width, Turns(cores) if cores else None
        )
        with self._lock:
            self._replace(loaded)

    def turns_of(self, artifact: torch.Tensor, cores_here: int) -> Turns | None:
        """The cores of the model that has an archive; None where nobody loaded it as a module.

        Args:
            artifact: The archive's bytes.
            cores_here: How many this process has.
        """
        with self._lock:
            loaded = self._by_memory.get(artifact.untyped_storage()._cdata)
            if loaded is not None and loaded.turns is None:
                self._settle(loaded, cores_here)
            return None if loaded is None else loaded.turns

    def _replace(self, loaded: LoadedModel) -> None:
        """Put a model in the place of those whose archives it has, and forget those that were freed."""
        for reference in loaded.artifacts:
            former = self._by_memory.get(reference.cdata)
            if former is not None:
                former.artifacts = [each for each in former.artifacts if each.cdata != reference.cdata]
        self._models = [model for model in self._models if model.is_alive()] + [loaded]
        self._by_memory = {each.cdata: model for model in self._models for each in model.artifacts}

    def _settle(self, called: LoadedModel, cores_here: int) -> None:
        """Give cores to all models that have none, in the order in which they were loaded."""
        usage = [0] * cores_here
        living = [model for model in self._models if model is called or model.is_used()]
        for model in living:
            _count(usage, model)
        for model in living:
            if model.turns is None:
                model.turns = Turns([_least_used(usage, model.width)])
                _count(usage, model)


def _artifacts(model: torch.nn.Module) -> list[torch.Tensor]:
    return [buffer for name, buffer in model.named_buffers() if name.rpartition(".")[2] == "artifact"]


def _count(usage: list[int], model: LoadedModel) -> None:
    for core in model.used_cores():
        if core < len(usage):
            usage[core] += 1


def _least_used(usage: Sequence[int], width: int) -> int:
    """The first of adjacent cores that have the fewest models; 0 where there are not that many."""
    firsts = range(max(len(usage) - width + 1, 1))
    return min(firsts, key=lambda first: sum(usage[first : first + width]))


LOADED = LoadedModels()
