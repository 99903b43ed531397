"""The tiny profile with a kernel: two instructions of its first operation have stacks of their own."""

from __future__ import annotations

from typing import Any

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
        "nki_source_location": [
            f"{file}:{line}" if frame else "" for frame, (file, line) in zip(INSIDE, source)
        ],
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
