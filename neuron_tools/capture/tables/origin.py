"""The columns that say where a row came from: layer, framework operation, source line, stack."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.columns import Codes, TextPools
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.table_template import ExecutionOrigin
from neuron_tools.records.program import Frame, FrameworkOperation

TEXT_COLUMNS = frozenset({"layer", "stack_frame_ids", "source_file"})
PLACE_COLUMNS = frozenset({"layer", "source_file"})
NUMBER_COLUMNS = frozenset({"source_line", "is_backward"})
OPERATION_COLUMNS = NUMBER_COLUMNS | {"is_recomputed"}
LINE_COLUMNS = frozenset({"stack_frame_ids", "source_file"})
LINE_NUMBER_COLUMNS = frozenset({"source_line"})
NO_LAYER = ""
TOP_LEVEL = "<module>"


@dataclass(frozen=True)
class Origins:
    """Origin values of each framework operation of a Program, plus a last one for "none"."""

    texts: Mapping[str, Sequence[str | None]]
    numbers: Mapping[str, npt.NDArray[np.generic]]

    def text_codes(
        self, names: frozenset[str], rows: npt.NDArray[np.int64], pools: TextPools
    ) -> dict[str, Codes]:
        """Codes of the named text columns for rows that belong to the given framework operations."""
        return {name: pools[name].codes(self.texts[name])[rows] for name in sorted(names)}

    def number_columns(
        self, names: frozenset[str], rows: npt.NDArray[np.int64]
    ) -> dict[str, npt.NDArray[np.generic]]:
        """The named number columns likewise."""
        return {name: self.numbers[name][rows] for name in sorted(names)}

    def from_execution(
        self,
        kind: str,
        names: frozenset[str],
        rows: npt.NDArray[np.int64],
        numbers: frozenset[str] = NUMBER_COLUMNS,
    ) -> dict[str, Any]:
        """What the rows of a TableTemplate take from their execution.

        An eager operation takes everything, each of several fused ones from its own call. An operation of a
        graph knows its module, and its line unless the model's code is all in libraries: then the line that
        called the graph stands for it; all of a graph that is called again is computed again.
        """
        if kind == "fused":
            return {"origin": names, "origin_numbers": numbers, "members": rows}
        if kind == "eager":
            return {"origin": names, "origin_numbers": numbers}
        without_line = np.array([not leaf for leaf in self.texts["stack_frame_ids"]], bool)
        return {
            "origin": names & LINE_COLUMNS,
            "origin_numbers": LINE_NUMBER_COLUMNS,
            "origin_flags": numbers & {"is_recomputed"},
            "origin_rows": without_line[rows],
        }


def origins(framework: Sequence[FrameworkOperation], stacks: StackRegistry) -> Origins:
    """Origin columns of a Program's framework operations; index -1 stands for "belongs to none"."""
    none = FrameworkOperation("")
    operations = [*framework, none]
    return Origins(
        texts={
            "layer": [layer_path(op.module_path, op.stack) for op in operations],
            "stack_frame_ids": [stacks.leaf(op.stack) for op in operations],
            "source_file": [op.stack[0].file if op.stack else None for op in operations],
            "framework_name": [op.name for op in operations],
        },
        numbers={
            "source_line": np.array([op.stack[0].line if op.stack else 0 for op in operations], np.int32),
            "is_backward": np.array([op.backward for op in operations], bool),
            "is_recomputed": np.array([op.recomputed for op in operations], bool),
        },
    )


def execution_origin(
    stack: Sequence[Frame],
    module_path: str,
    leaf: Callable[[Sequence[Frame]], str],
    *,
    backward: bool,
    recomputed: bool,
) -> ExecutionOrigin:
    """What an execution puts into the origin columns."""
    return ExecutionOrigin(
        texts={
            "layer": layer_path(module_path, stack),
            "stack_frame_ids": leaf(stack),
            "source_file": stack[0].file if stack else None,
        },
        numbers={
            "source_line": stack[0].line if stack else 0,
            "is_backward": backward,
            "is_recomputed": recomputed,
        },
    )


def callers(stack: Sequence[Frame], forward: Sequence[Frame]) -> Sequence[Frame]:
    """Who called what is computed again, as autograd's own thread does not tell.

    Args:
        stack: Its frames, innermost first.
        forward: Those of a forward operation that was computed by the same call.

    Returns:
        The frames of `forward` outside of the function that `stack` ends with.
    """
    if not stack:
        return ()
    last = (stack[-1].file, stack[-1].function)
    inside = [place for place, frame in enumerate(forward) if (frame.file, frame.function) == last]
    return forward[inside[-1] + 1 :] if inside else forward


def layer_path(module_path: str, stack: Sequence[Frame] = ()) -> str:
    """The slash-separated form that the published schema uses for layers.

    Work outside of all modules has the function that it stands in: "/train_step()"; at the top of a script,
    the script: "/train.py".
    """
    if module_path:
        return "/" + module_path.replace(".", "/")
    if not stack:
        return NO_LAYER
    function = stack[0].function
    return "/" + (os.path.basename(stack[0].file) if function == TOP_LEVEL else f"{function}()")
