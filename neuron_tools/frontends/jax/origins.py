"""The framework operations of a module that JAX lowered, found from its operations' locations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.frontends.jax import location, operation_path
from neuron_tools.records.program import FrameworkOperation

# Made by the lowering for the operation that uses them; they have no place of their own.
_SERVANTS = frozenset({"stablehlo.constant", "stablehlo.return", "func.return"})


class LocationOrigins:
    """Gives each distinct location a framework operation (`compiler.stablehlo.Origins`).

    Attributes:
        framework: The operations found so far.
    """

    def __init__(self) -> None:
        self.framework: list[FrameworkOperation] = []
        self._rows: dict[location.SourceLocation, int] = {}

    def rows(self, operation: Any, calls: Sequence[Any]) -> tuple[int, ...]:
        """The row of the operation's location, seen from the program's entry."""
        if operation.name in _SERVANTS:
            return ()
        own = location.parse(str(operation.location))
        if not own.path and not own.frames:
            return ()
        return (self._row(location.nested([*(location.parse(str(call.location)) for call in calls), own])),)

    def _row(self, place: location.SourceLocation) -> int:
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = len(self.framework)
            self.framework.append(framework_operation(place))
        return row


def framework_operation(place: location.SourceLocation) -> FrameworkOperation:
    """The framework's view of one location: JAX's own name for it, the module it belongs to, its frames."""
    path = operation_path.parse(place.path)
    return FrameworkOperation(
        name=place.path or path.primitive,
        module_path=path.module_path,
        stack=place.frames,
        backward=path.is_backward,
        recomputed=path.is_recomputed,
    )
