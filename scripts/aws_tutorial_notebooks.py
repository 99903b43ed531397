"""Notebooks as scripts: their cells in order, and at the end what the device and the CPU gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.arrays import Floats

OUTPUTS = "outputs.npz"
PROLOGUE = """\
from aws_tutorial_notebooks import declare_vision_operators, keep_outputs
declare_vision_operators()
"""
_ENVIRONMENT = re.compile(r"%env (\w+)=(\S+)")
_TIMED = re.compile(r"%timeit (.+)")


def script_of(notebook: Path, outputs: Mapping[str, str]) -> str:
    """A notebook's cells as one script.

    Lines for IPython are left out, but for variables of the environment and calls that it times.

    Args:
        notebook: The file.
        outputs: Expression of what the device gave -> of what the CPU gives; kept at the end.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    body = "\n".join("\n".join(_plain(text.splitlines())) for text in texts)
    pairs = ", ".join(f"({device}, {cpu})" for device, cpu in outputs.items())
    return f"{PROLOGUE}{body}\nwith torch.no_grad():\n    keep_outputs([{pairs}])\n"


def _plain(lines: Iterable[str]) -> Iterator[str]:
    """Lines of Python; one stays one, so that line numbers of a cell are kept."""
    continued = False
    for line in lines:
        is_command = continued or line.startswith(("%", "!"))
        yield _command(line) if is_command else line
        continued = is_command and line.endswith("\\")


def _command(line: str) -> str:
    if found := _ENVIRONMENT.match(line):
        return f"import os; os.environ[{found[1]!r}] = {found[2]!r}"
    timed = _TIMED.match(line)
    return timed[1] if timed else f"# {line}"


def keep_outputs(pairs: Iterable[tuple[Any, Any]]) -> None:
    """Write what the device and the CPU gave into the working folder."""
    arrays: dict[str, Any] = {}
    for number, (device, cpu) in enumerate(pairs):
        arrays[f"device_{number}"], arrays[f"cpu_{number}"] = _flat(device), _flat(cpu)
    np.savez(OUTPUTS, **arrays)


def _flat(output: Any) -> Floats:
    """All values of a model's output in order."""
    from torch.utils import _pytree as pytree

    plain = tuple(output.values()) if isinstance(output, Mapping) else output
    return np.concatenate([leaf.detach().double().numpy().reshape(-1) for leaf in pytree.tree_leaves(plain)])


def kept_outputs(folder: Path) -> tuple[list[Floats], list[Floats]]:
    """What the device and the CPU gave in a folder, output by output."""
    with np.load(folder / OUTPUTS) as arrays:
        count = len(arrays.files) // 2
        return [arrays[f"device_{i}"] for i in range(count)], [arrays[f"cpu_{i}"] for i in range(count)]


def declare_vision_operators() -> None:
    """Let torchvision be imported where its compiled operators are for another build of PyTorch.

    The public index has it for CUDA only, and it registers shapes for operators that are not there then.
    """
    import torch

    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    try:
        for file in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(file))
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", _without_overlaps, "CPU")
        _libraries.append(library)
        extension: Any = import_module("torchvision.extension")
        extension._has_ops = lambda: True  # else it refuses to call `nms`


def _without_overlaps(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Indices of boxes (x1, y1, x2, y2), best first, without those that overlap a better one too much."""
    import torch

    corners, areas = boxes[:, :2], (boxes[:, 2:] - boxes[:, :2]).prod(1)
    left, kept = scores.argsort(descending=True, stable=True), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        low = torch.maximum(corners[best], corners[left])
        high = torch.minimum(boxes[best, 2:], boxes[left, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        left = left[shared <= iou_threshold * (areas[best] + areas[left] - shared)]
    return torch.stack(kept) if kept else left


_libraries: list[Any] = []
"""Operators are declared as long as their library is held."""
