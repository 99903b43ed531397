"""Source stacks as the profile stores them: a tree of frames with three look-up tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from neuron_tools.capture.install_folders import InstallFolders
from neuron_tools.records.program import Frame

NO_PARENT = ""


RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
"""What Dynamo calls the rest of a function behind a break of its graph."""


class StackRegistry:
    """Numbers frames so that equal stacks share rows: StackFrame and its three look-ups.

    A StackFrame row is a frame together with all its callers, so one id names a whole stack. `take_rows`
    hands out the rows made since it was last called.
    """

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], str] = {}
        self._locations: dict[tuple[int, int, int], int] = {}
        self._files: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self._known: dict[tuple[Frame, ...], str] = {}
        self._stacks: dict[str, tuple[Frame, ...]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = self._empty_rows()
        self.install_folders = InstallFolders()

    @property
    def files(self) -> tuple[str, ...]:
        """Every source file seen, in order of first appearance."""
        return tuple(self._files)

    def leaf(self, stack: Sequence[Frame]) -> str:
        """Id of the innermost frame of a stack (innermost first); "" for an empty one."""
        key = tuple(stack)
        leaf = self._known.get(key)
        if leaf is None:
            leaf = NO_PARENT
            for frame in reversed(key):
                leaf = self._frame(leaf, frame)
            self._known[key] = leaf
            self._stacks.setdefault(leaf, key)
        return leaf

    def continued(self, leaf: str, calling: str) -> str:
        """Id of a stack together with that of the call that it ran in.

        Args:
            leaf: Innermost frame of a stack that begins in a compiled function.
            calling: Innermost frame of the stack that called what was compiled.
        """
        inner, outer = self._stacks.get(leaf, ()), self._stacks.get(calling, ())
        return self.leaf((*inner, *_callers(inner, outer))) if inner and outer else leaf

    def take_rows(self) -> dict[str, list[dict[str, Any]]]:
        """New rows by table name; each row is handed out once."""
        rows, self._rows = self._rows, self._empty_rows()
        return {table: new for table, new in rows.items() if new}

    def _frame(self, parent: str, frame: Frame) -> str:
        location = self._location(frame)
        key = (parent, location)
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = str(len(self._frames) + 1)
            row = {"id": number, "file_location_id": location, "parent_frame_id": parent}
            self._rows["StackFrame"].append(row)
        return number

    def _location(self, frame: Frame) -> int:
        file = self._files.get(frame.file) or self._new_file(frame.file)
        function = self._name(self._functions, "StackFrameFunctionName", frame.function)
        key = (file, function, frame.line)
        number = self._locations.get(key)
        if number is None:
            number = self._locations[key] = len(self._locations) + 1
            self._rows["StackFrameFileLocation"].append(
                {
                    "id": str(number),
                    "file_name_id": file,
                    "function_name_id": function,
                    "line_number": frame.line,
                }
            )
        return number

    def _new_file(self, name: str) -> int:
        number = self._files[name] = len(self._files) + 1
        row = {"id": str(number), "name": name, "installed_in": self.install_folders.of(name)}
        self._rows["StackFrameFileName"].append(row)
        return number

    def _name(self, known: dict[str, int], table: str, text: str) -> int:
        number = known.get(text)
        if number is None:
            number = known[text] = len(known) + 1
            self._rows[table].append({"id": str(number), "name": text})
        return number

    @staticmethod
    def _empty_rows() -> dict[str, list[dict[str, Any]]]:
        names = ("StackFrame", "StackFrameFileLocation", "StackFrameFileName", "StackFrameFunctionName")
        return {name: [] for name in names}


def _callers(inner: Sequence[Frame], outer: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of a call that a stack lacks: those outside the function in which it begins.

    A stack that was noted with all its callers, as JAX does, begins where the call does, and lacks none.
    """
    begin = _function_of(inner[-1])
    for place, frame in enumerate(outer):
        if _function_of(frame) == begin:
            rest = outer[place + 1 :]
            # A function that was broken off runs its rest below itself.
            while rest and RESUMED.match(_name(outer[place])) and _function_of(rest[0]) == begin:
                place, rest = place + 1, rest[1:]
            return rest
    return outer


def _function_of(frame: Frame) -> tuple[str, str]:
    name = _name(frame)
    resumed = RESUMED.match(name)
    return frame.file, resumed.group(1) if resumed else name


def _name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2]
