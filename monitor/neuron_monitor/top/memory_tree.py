"""The tree of memory: device, core, and on it categories and loaded models."""

from __future__ import annotations

from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.report.memory import device_categories, logical_memory
from neuron_monitor.units import binary_size
from neuron_tools.frozen import frozen

NAME_WIDTH = 42
_NAMES = {
    "tensors": "Tensors",
    "constants": "Constants",
    "model_code": "Model Code",
    "runtime_memory": "Runtime Memory",
    "model_shared_scratchpad": "Model Scratchpad",
}


@frozen
class Branch:
    """One line of the tree.

    Attributes:
        path: Keys from the root; unique.
        device_bytes: Device memory; None where only the whole is known.
    """

    path: tuple[str, ...]
    name: str
    model_id: str
    device_bytes: int | None

    def text(self) -> str:
        """The line: name, model id, device memory."""
        name = self.name[: NAME_WIDTH - 4 * len(self.path)]
        size = "" if self.device_bytes is None else binary_size(self.device_bytes)
        return f"{name:<{NAME_WIDTH - 4 * len(self.path)}} {self.model_id:>9} {size:>11}"


def memory_branches(processes: list[ProcessReading], cores_per_device: int) -> list[Branch]:
    """All lines, parents before children."""
    memory: dict[int, dict[int, dict[str, int]]] = {}
    models: dict[int, list[tuple[str, str]]] = {}
    for process in processes:
        size = process.logical_core_size
        for core, held in logical_memory(process).items():
            device = core * size // max(1, cores_per_device)
            known = memory.setdefault(device, {}).setdefault(core, dict.fromkeys(device_categories({}), 0))
            for name, count in held.items():
                known[name] += count
        for model in process.models:
            models.setdefault(model.core // size, []).append((model.name, str(model.model_id)))
    branches = []
    for device, cores in sorted(memory.items()):
        total = sum(sum(held.values()) for held in cores.values())
        branches.append(Branch((str(device),), f"ND {device}", "", total))
        for core, held in sorted(cores.items()):
            path = (str(device), str(core))
            branches.append(Branch(path, f"NC {core}", "", sum(held.values())))
            for name, count in held.items():
                branches.append(Branch((*path, name), _NAMES[name], "", count))
            for name, model_id in models.get(core, []):
                branches.append(Branch((*path, f"model {model_id}"), name, model_id, None))
    return branches
