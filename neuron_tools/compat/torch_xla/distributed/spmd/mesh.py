"""Meshes of cores, as programs name their axes."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.sharding import Sharding

Axis = int | str | None
PartitionSpec = tuple[Axis | tuple[int | str, ...], ...]
"""For each dimension of a tensor the axis or axes of the mesh that it is cut along; None: not."""
AxisNumbers = tuple[int | tuple[int, ...] | None, ...]
"""The same by numbers alone."""


class Mesh:
    """The cores as an array with named axes.

    Args:
        device_ids: Their numbers, in the order in which they fill the array.
        mesh_shape: Its extents.
        axis_names: Names of its axes; empty means none has one.

    Raises:
        XlaError: The shape is not of as many cores, a core occurs twice, or names and axes do not match.
    """

    def __init__(
        self,
        device_ids: NDArray[Any] | Sequence[int],
        mesh_shape: Sequence[int],
        axis_names: Sequence[str] | None = (),
    ) -> None:
        self.device_ids = np.asarray(device_ids).ravel()
        self.mesh_shape = tuple(int(extent) for extent in mesh_shape)
        self.axis_names = tuple(axis_names or ())
        if len(self.device_ids) != math.prod(self.mesh_shape):
            raise XlaError(
                f"A mesh of shape {self.mesh_shape} has {math.prod(self.mesh_shape)} cores and got "
                f"{len(self.device_ids)}: let the product of its extents be xr.global_runtime_device_count()."
            )
        if len(set(self.device_ids.tolist())) != len(self.device_ids):
            raise XlaError("A core stands twice in a mesh: name each once.")
        if self.axis_names and not (
            len(set(self.axis_names)) == len(self.axis_names) == len(self.mesh_shape)
        ):
            raise XlaError(
                f"A mesh of shape {self.mesh_shape} needs {len(self.mesh_shape)} different names of axes and "
                f"got {self.axis_names}."
            )

    def size(self) -> int:
        """How many cores."""
        return len(self.device_ids)

    def shape(self) -> OrderedDict[Axis, int]:
        """Extents by name, or by number where axes have no names."""
        return OrderedDict(zip(self.axis_names or range(len(self.mesh_shape)), self.mesh_shape))

    def get_logical_mesh(self) -> NDArray[Any]:
        """The array of the cores' numbers."""
        return self.device_ids.reshape(self.mesh_shape)

    def get_axis_name_idx(self, name: str) -> int | None:
        """The number of an axis; None where none has that name."""
        return self.axis_names.index(name) if name in self.axis_names else None

    def sharding(self, partition_spec: PartitionSpec) -> Sharding:
        """How a tensor lies that is cut along these axes.

        Raises:
            XlaError: There is no such axis, or one is used twice.
        """
        cut = [self._numbers(axes) for axes in self.numbered(partition_spec)]
        used = [axis for axes in cut for axis in axes]
        if len(set(used)) != len(used):
            raise XlaError(
                f"The partition spec {partition_spec} uses an axis of the mesh twice: use each once."
            )
        rest = [axis for axis in range(len(self.mesh_shape)) if axis not in used]
        cores = self.get_logical_mesh().transpose(*used, *rest).ravel()
        counts = [math.prod(self.mesh_shape[axis] for axis in axes) for axes in cut]
        return Sharding.of(counts, [int(core) for core in cores])

    def numbered(self, partition_spec: PartitionSpec) -> AxisNumbers:
        """The spec by the axes' numbers.

        Raises:
            XlaError: There is no such axis.
        """
        return tuple(
            tuple(map(self._number, axes)) if isinstance(axes, (tuple, list)) else self._number_or_none(axes)
            for axes in partition_spec
        )

    def _numbers(self, axes: int | tuple[int, ...] | None) -> tuple[int, ...]:
        return axes if isinstance(axes, tuple) else () if axes is None else (axes,)

    def _number_or_none(self, axis: Axis) -> int | None:
        return None if axis is None else self._number(axis)

    def _number(self, axis: int | str) -> int:
        number = self.get_axis_name_idx(axis) if isinstance(axis, str) else axis
        if not isinstance(number, int) or not 0 <= number < len(self.mesh_shape):
            raise XlaError(f"The mesh has no axis {axis!r}; it has {list(self.shape())}.")
        return number

    def __repr__(self) -> str:
        return f"Mesh({dict(self.shape())}, cores {self.device_ids.tolist()})"


class HybridMesh(Mesh):
    """A mesh within machines and among them; here there is one machine.

    Args:
        ici_mesh_shape: Extents within a machine.
        dcn_mesh_shape: Extents among machines; all 1 by default.
        axis_names: Names of the axes.

    Raises:
        XlaError: As in `Mesh`, or the two shapes have not as many axes.
    """

    def __init__(
        self,
        *,
        ici_mesh_shape: Sequence[int],
        dcn_mesh_shape: Sequence[int] | None = None,
        axis_names: Sequence[str] | None = (),
    ) -> None:
        among = dcn_mesh_shape or (1,) * len(ici_mesh_shape)
        self.ici_mesh_shape, self.dcn_mesh_shape = tuple(ici_mesh_shape), tuple(among)
        if len(self.ici_mesh_shape) != len(self.dcn_mesh_shape):
            raise XlaError(
                f"ici_mesh_shape {self.ici_mesh_shape} and dcn_mesh_shape {self.dcn_mesh_shape} must have as "
                "many axes: write 1 for one that does not reach over machines."
            )
        shape = [inner * outer for inner, outer in zip(ici_mesh_shape, among)]
        super().__init__(np.arange(math.prod(shape)), shape, axis_names)
