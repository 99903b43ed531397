"""What belongs to a selection: of each moment of device time, its operation, its module and its lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from neuron_explorer.analyses import analysis
from neuron_explorer.page import View
from neuron_explorer.steps import scope_name
from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import load_frames
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

PIECES = "charged-pieces"
KINDS = ("operation", "module", "line")


@frozen
class Piece:
    """Device time that is charged to one operation of one module at one place.

    Attributes:
        lines: The user's own line and the exact one, each "file:line"; those that are known.
    """

    operation: str
    module: str
    lines: tuple[str, ...]
    device_ns: float


@frozen
class Related:
    """What belongs to a selection: device time in ns by operation, module and line, and in all."""

    device_ns: float
    total_ns: float
    operations: dict[str, float]
    modules: dict[str, float]
    lines: dict[str, float]


@analysis(PIECES, "Relating operations, modules and lines")
def charged_pieces(profile: Profile) -> tuple[Piece, ...]:
    """All charged device time of a profile, by operation, module and lines."""
    own, frames = load_own_lines(profile), load_frames(profile)
    pieces = []
    for charge in charge_device_time(profile).charges:
        leaf = charge.origin.stack
        places = [(own[leaf].place.file, own[leaf].place.line)] if leaf in own else []
        places += [(frames[leaf].file, frames[leaf].line)] if leaf in frames else []
        lines = tuple(dict.fromkeys(f"{file}:{line}" for file, line in places if file))
        pieces.append(Piece(charge.origin.operation, charge.origin.module, lines, charge.device_ns))
    return tuple(pieces)


def related_to(pieces: Iterable[Piece], kind: str, key: str) -> Related:
    """What belongs to an operation, a module with all inside it, or a line.

    Raises:
        UsageError: There is no such kind.
    """
    if kind not in KINDS:
        raise UsageError(f"Nothing is chosen by {kind!r}: choose one of {', '.join(KINDS)}.")
    sums: dict[str, dict[str, float]] = {name: defaultdict(float) for name in KINDS}
    device_ns = total_ns = 0.0
    for piece in pieces:
        total_ns += piece.device_ns
        if not _belongs(piece, kind, key):
            continue
        device_ns += piece.device_ns
        sums["operation"][piece.operation] += piece.device_ns
        sums["module"][piece.module] += piece.device_ns
        for line in piece.lines:
            sums["line"][line] += piece.device_ns
    return Related(device_ns, total_ns, *(dict(sums[name]) for name in KINDS))


def _belongs(piece: Piece, kind: str, key: str) -> bool:
    if kind == "operation":
        return piece.operation == key
    if kind == "line":
        return key in piece.lines
    return piece.module == key or piece.module.startswith(f"{key.rstrip('/')}/")


def related_answer(view: View) -> dict[str, Any]:
    """The answer to a selection `sel` in the address of a view, as JSON.

    Raises:
        NeuronToolsError: The profile cannot be read, or the selection makes no sense.
    """
    kind, _, key = view.address.get("sel").partition(":")
    related = related_to(view.result(PIECES), kind, key)
    return {
        "title": scope_name(view),
        "device_ns": related.device_ns,
        "total_ns": related.total_ns,
        "operations": related.operations,
        "modules": related.modules,
        "lines": related.lines,
    }
