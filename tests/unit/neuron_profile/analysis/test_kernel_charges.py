"""Device time inside kernels by line, once in each file: part of what the calling lines are charged."""

from __future__ import annotations

from typing import Any

import pytest

from neuron_explorer.api.source_costs import read_source_costs
from neuron_explorer.source_costs import source_work
from neuron_profile.analysis.kernel_charges import charge_kernel_lines
from neuron_profile.analysis.source_frames import SourceLine
from neuron_tools import open_profile

USER, KERNEL = "/project/train.py", "/project/kernel.py"
# id: file, line, the frame of its caller. The first operation is called at train.py:2; two instructions of it
# are of kernel.py:7 and, through a helper in the file of the call, of train.py:5, which kernel.py:8 calls.
FRAMES = {
    "1": (USER, 2, ""), "2": (USER, 3, ""), "7": (KERNEL, 7, "1"), "8": (KERNEL, 8, "1"), "5": (USER, 5, "8"),
}  # fmt: skip
INSIDE = ["", "7", "5", "", ""]


def kernel_tables(tables: Any) -> dict[str, Any]:
    files = [USER, KERNEL]
    locations = {
        "id": list(FRAMES),
        "file_name_id": [files.index(file) for file, _, _ in FRAMES.values()],
        "function_name_id": [1] * len(FRAMES),
        "line_number": [line for _, line, _ in FRAMES.values()],
    }
    source = [FRAMES[frame][:2] if frame else FRAMES["1"][:2] for frame in INSIDE]
    placed = {
        "stack_frame_ids": INSIDE,
        "source_file": [file for file, _ in source],
        "source_line": [line for _, line in source],
    }
    called = {"source_file": [USER] * 3, "source_line": [2, 3, 3]}
    return {
        **tables,
        "Instruction": {**tables["Instruction"], **placed},
        "FrameworkInstruction": {**tables["FrameworkInstruction"], **called},
        "StackFrame": {
            "id": list(FRAMES), "file_location_id": [int(frame) for frame in FRAMES],
            "parent_frame_id": [parent for _, _, parent in FRAMES.values()],
        },
        "StackFrameFileLocation": locations,
        "StackFrameFileName": {"id": ["0", "1"], "name": files},
    }  # fmt: skip


def test_each_file_has_the_time_at_its_innermost_line(make_profile: Any, tiny_tables: Any) -> None:
    with open_profile(make_profile(tables=kernel_tables(tiny_tables))) as profile:
        charged = charge_kernel_lines(profile)
    # MATMUL 1010 to 1050 and TENSOR_TENSOR 1030 to 1060 share 20 ns.
    expected = {SourceLine(KERNEL, 7): 30, SourceLine(KERNEL, 8): 20, SourceLine(USER, 5): 20}
    assert charged == pytest.approx(expected)


def test_what_is_no_kernel_has_no_lines(make_profile: Any) -> None:
    with open_profile(make_profile()) as profile:
        assert charge_kernel_lines(profile) == {}


def test_the_explorer_and_the_editor_show_the_same(make_profile: Any, tiny_tables: Any) -> None:
    with open_profile(make_profile(tables=kernel_tables(tiny_tables))) as profile:
        shown = source_work(profile, KERNEL)
        editor = read_source_costs(profile).files[KERNEL]
    inside = {line: work.kernel_ns for line, work in shown.items() if work.kernel_ns}
    assert inside == pytest.approx({line: work.device_ns for line, work in editor.total.items()})
