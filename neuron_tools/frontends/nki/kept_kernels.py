"""Kernels behind compiled artifacts: what computes the values of one, kept on the machine that compiled it.

An artifact holds instructions, which give times, and no code that reading it would run. So the kernel stays
in the user's own cache folder, under the digest that the artifact names, and only whoever compiled an
artifact can have it compute. What was not used for a week is removed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from neuron_tools import hardware
from neuron_tools.arrays import Array
from neuron_tools.device.build import cache_folder
from neuron_tools.frozen import frozen
from neuron_tools.neff import Neff, NeffError
from neuron_tools.neff.files import write_whole
from neuron_tools.nki.abstract import AbstractArray, map_leaves
from neuron_tools.nki.arguments import find_adapter
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.kernel import Kernel

ATTACHMENT = "kernel"
"""What an artifact calls the digest of its kernel."""
_KEPT_SECONDS = 7 * 24 * 3600
_UNFIT = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)
"""What pickling raises for a kernel that holds what no other process can have: a lock, an open file."""


@frozen
class KeptKernel:
    """A kernel with the forms of one call.

    Attributes:
        function: Its function.
        grid, older_dialect, mode: As of `Kernel`.
        arguments, keywords: Of the call, with an `AbstractArray` for each array.
        results: Forms of the arrays that the call returned.
    """

    function: Callable[..., Any]
    grid: tuple[Any, ...]
    older_dialect: bool
    mode: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    results: tuple[AbstractArray, ...]

    @property
    def inputs(self) -> tuple[AbstractArray, ...]:
        """Forms of the arrays that it takes, in order."""
        return _arrays((self.arguments, dict(self.keywords)))

    def compute(self, inputs: Sequence[Array], target: str) -> tuple[Array, ...]:
        """Its results for other values.

        Args:
            inputs: An array of each form.
            target: Generation that it was compiled for.

        Raises:
            NkiError: The kernel breaks a rule.
        """
        values = iter(inputs)
        arguments, keywords = map_leaves(
            (self.arguments, dict(self.keywords)), _is_array, lambda _: next(values)
        )
        kernel = Kernel(self.function, grid=self.grid, older_dialect=self.older_dialect, mode=self.mode,
                        core=hardware.get(target))  # fmt: skip
        return _arrays(kernel(*arguments, **keywords), lambda value: isinstance(value, np.ndarray))


def keep(
    kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any], outputs: Any
) -> dict[str, bytes]:
    """Keep a kernel for the artifact of one call.

    Args:
        kernel: It.
        arguments, keywords: Of the call.
        outputs: What it returned.

    Returns:
        What the artifact has attached to it; nothing where another process cannot have the kernel.
    """
    given, named, results = map_leaves(
        (arguments, dict(keywords), _arrays(outputs, _has_adapter)), _has_adapter, _form
    )
    kept = KeptKernel(kernel.func, kernel.grid, kernel.older_dialect, kernel.mode, given, named, results)
    try:
        data = _pickled(kept)
    except _UNFIT:
        return {}
    digest = hashlib.sha256(data).hexdigest()
    folder = _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        write_whole(folder / digest, data)
    except OSError:
        return {}
    return {ATTACHMENT: digest.encode()}


def kept_kernel(neff: Neff) -> KeptKernel:
    """The kernel of an artifact.

    Raises:
        NeffError: This machine has none for it, or it cannot be read.
    """
    digest = neff.attachments.get(ATTACHMENT, b"").decode("ascii", "replace")
    path = _folder() / digest
    if not digest.isalnum() or not path.is_file():
        raise NeffError(
            f"The artifact of {neff.program.name} gives times alone: its kernel, which computes values, "
            "stays with the user who compiled it; compile it here (nki.baremetal with save_neff_name)."
        )
    data = path.read_bytes()
    path.touch()
    if hashlib.sha256(data).hexdigest() != digest or path.stat().st_uid != os.getuid():
        raise NeffError(f"{path} is damaged, or another user's; compile the kernel again.")
    try:
        kept: KeptKernel = pickle.loads(data)  # the user's own file, under its digest
    except (ImportError, AttributeError) as error:
        raise NeffError(
            f"The kernel of {neff.program.name} needs what this program lacks: {error}."
        ) from error
    return kept


def _pickled(kept: KeptKernel) -> bytes:
    """The kernel as bytes, with the functions of its own module, which another process may not find."""
    from numba import cloudpickle

    module = sys.modules.get(kept.function.__module__)
    is_own = isinstance(module, ModuleType) and not module.__name__.startswith("neuron_tools.")
    if is_own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(kept))
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)


def _folder() -> Path:
    return cache_folder() / "kernels"


def _sweep(folder: Path) -> None:
    """Remove what was not used for long."""
    oldest = time.time() - _KEPT_SECONDS
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def _is_array(value: Any) -> bool:
    return isinstance(value, AbstractArray)


def _has_adapter(value: Any) -> bool:
    return find_adapter(value) is not None


def _form(value: Any) -> AbstractArray:
    adapter = find_adapter(value)
    assert adapter is not None
    return AbstractArray(
        tuple(int(extent) for extent in adapter.shape(value)), as_dtype(adapter.dtype(value))
    )


def _arrays(value: Any, is_array: Callable[[Any], bool] = _is_array) -> tuple[Any, ...]:
    """The arrays in a structure, in order."""
    found: list[Any] = []
    map_leaves(value, is_array, found.append)
    return tuple(found)
