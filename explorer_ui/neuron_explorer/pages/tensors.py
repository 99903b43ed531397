"""Tensors: each with its size, how often it is loaded, when it is held, and who reads and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_explorer.analyses import analysis
from neuron_explorer.page import Page, View
from neuron_explorer.parts.quantities import Cell, bytes_cell, count_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import Section
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.tensor_traffic import MOST, Tensor, TensorUser, find_tensors, find_users
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration
from neuron_tools.profile.reader import Profile

TENSORS, USERS = "tensors", "tensor-users"
TENSOR = "tensor"
"""Parameter of the address: the tensor whose readers and writers are shown."""
HEADINGS = (
    "Tensor", "Program", "Shape", "Size", "Loaded", "Read", "Written", "Per byte", "Transfers", "Held",
)  # fmt: skip
USER_HEADINGS = ("Reads or writes", "Operation", "Module", "Line", "Bytes", "Transfers", "Time of transfers")
LONGEST_PROGRAM = 18
"""Characters that are shown of its name."""
OFTEN = 1.5
"""Loads of all of a tensor above which the figure stands out: it could have stayed in SBUF."""


@analysis(TENSORS, "Summing up what tensors are moved")
def tensors_of(profile: Profile) -> tuple[Tensor, ...]:
    """Tensors by bytes moved."""
    return find_tensors(profile)


@analysis(USERS, "Finding who reads and writes the tensor")
def users_of(profile: Profile, tensor: str) -> tuple[TensorUser, ...]:
    """Readers and writers of one tensor."""
    return find_users(profile, tensor)


def layout(view: View) -> list[Any]:
    """Components of the page."""
    return [TABLES.show(view)]


def _needs(view: View) -> list[tuple[str, ...]]:
    chosen = view.address.get(TENSOR)
    return [(TENSORS,), *([(USERS, chosen)] if chosen else [])]


def _draw(view: View) -> Any:
    """Readers and writers of the chosen tensor, then all tensors."""
    tensors: Sequence[Tensor] = view.result(TENSORS)
    if not tensors:
        return empty_state("No tensor is moved here.", "Transfers and the programs' arguments name tensors.")
    chosen = view.address.get(TENSOR)
    users = [_users(view, chosen)] if chosen else []
    return [
        *users,
        table_card(
            "Tensors",
            HEADINGS,
            [_row(view, tensor, chosen) for tensor in tensors],
            explains=(f"The {MOST} that are moved most. " if len(tensors) == MOST else "")
            + "Loaded: how often by a physical core, in one execution; per byte: all loads of what is shown. "
            "Choose a tensor for who reads and writes it.",
        ),
    ]


TABLES = Section("tensors/tables", _needs, _draw)


def _users(view: View, chosen: str) -> Any:
    found: Sequence[TensorUser] = view.result(USERS, chosen)
    return table_card(f"Who reads and writes {chosen}", USER_HEADINGS, [_user(view, user) for user in found])


def _row(view: View, tensor: Tensor, chosen: str) -> list[Any]:
    moved = tensor.read_bytes / tensor.byte_count if tensor.byte_count else None
    return [
        Cell(
            tensor.name, href=view.address.to("/tensors", **{TENSOR: tensor.title}), is_code=True,
            style="chosen" if tensor.title == chosen else "",
        ),
        _program(tensor),
        f"{tensor.dtype}{tensor.shape}", bytes_cell(tensor.byte_count), _times(tensor.loads),
        bytes_cell(tensor.read_bytes), bytes_cell(tensor.written_bytes), _times(moved),
        count_cell(tensor.transfers), _held(tensor, view.address.start_ns or 0),
    ]  # fmt: skip


def _program(tensor: Tensor) -> Cell:
    """Whose buffer or result it is; of what programs share, what it is."""
    name = tensor.program
    shown = f"{name[: LONGEST_PROGRAM - 1]}…" if len(name) > LONGEST_PROGRAM else name
    return Cell(shown or f"({tensor.kind})", is_code=True, title=f"{tensor.kind} {name}".strip())


def _times(value: float | None) -> Cell:
    if value is None:
        return Cell("", "", True)
    return Cell(f"{value:,.2f} ×", round(value, 4), True, style="warn" if value > OFTEN else "")


def _held(tensor: Tensor, start_ns: int) -> Cell:
    """When memory is held for a tensor that has a name; else from its first transfer to the last.

    Args:
        start_ns: Where what is shown begins: times count from there.
    """
    if tensor.held:
        begin, end = tensor.held[0]
        told = "from its allocation until it is freed"
    elif tensor.first_ns is None or tensor.last_ns is None:
        return Cell("", "", True)
    else:
        begin, end, told = tensor.first_ns, tensor.last_ns, "from its first transfer to its last"
    sign = "-" if begin < start_ns else "+" if start_ns else ""
    until = "to the end" if end is None else f"for {duration(end - begin)}"
    text = f"{sign}{duration(abs(begin - start_ns))} {until}"
    return Cell(text, begin, True, title=f"{told}; times count from the start of what is shown")


def _user(view: View, user: TensorUser) -> list[Any]:
    line = Cell("")
    if user.file:
        href = view.address.to("/source", file=user.file, line=user.line)
        line = Cell(place(SourceLine(user.file, user.line)), href=href, title=user.file,
                    select=f"line:{user.file}:{user.line}")  # fmt: skip
    return [
        "writes" if user.writes else "reads", Cell(user.operation, is_code=True),
        Cell(user.module, is_code=True), line, bytes_cell(user.byte_count),
        count_cell(user.transfers), time_cell(user.time_ns),
    ]  # fmt: skip


PAGE = Page("/tensors", "Tensors", layout, group="Limits")
