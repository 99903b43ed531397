"""`torch_xla.utils.serialization`: a structure in one file, each device tensor in a file of its own."""

from __future__ import annotations

import os
import shutil
from typing import Any

import torch

from ..core import xla_model as xm  # noqa: TID252  # found as torch_xla


class TensorReference:
    """Stands for a tensor in the structure's file; `tid` numbers its own file."""

    def __init__(self, tid: int) -> None:
        self.tid = tid


def save(data: Any, path: str, master_only: bool = True, global_master: bool = False) -> None:
    """Save a structure with its tensors on the CPU.

    Args:
        data: What to save.
        path: The structure's file; its tensors go into the folder `path` + ".tensors".
        master_only: Only the first process writes.
        global_master: The first of the job, not of each machine.
    """
    writes = not master_only or xm.is_master_ordinal(local=not global_master)
    folder = _get_tensors_folder(path)
    if writes:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    def convert(tensors: list[torch.Tensor]) -> list[TensorReference]:
        xm.unlazy(tensors)
        for number, tensor in enumerate(tensors if writes else ()):
            torch.save(tensor.cpu(), _get_tensor_file(folder, number))
        return [TensorReference(number) for number in range(len(tensors))]

    references = xm.ToXlaTensorArena(convert, xm.is_xla_tensor).transform(data)
    if writes:
        torch.save(references, path)


def load(path: str) -> Any:
    """What `save` saved, with its tensors on the CPU."""
    folder = _get_tensors_folder(path)

    def convert(references: list[TensorReference]) -> list[Any]:
        return [torch.load(_get_tensor_file(folder, each.tid)) for each in references]

    def is_reference(leaf: Any) -> bool:
        return isinstance(leaf, TensorReference)

    # The structure's file holds this module's own class: the caller says that it trusts the file.
    return xm.ToXlaTensorArena(convert, is_reference).transform(torch.load(path, weights_only=False))


def _get_tensors_folder(path: str) -> str:
    return path + ".tensors"


def _get_tensor_file(folder: str, number: int) -> str:
    return os.path.join(folder, f"tensor_{number}.pt")
