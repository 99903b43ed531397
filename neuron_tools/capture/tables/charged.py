"""The stretch of an execution that each HLO operation is charged with, for profiles without instructions.

Where a profile has a row for each instruction, whoever reads it divides the time among them (`exposure`).
Without them the intervals of operations are all that is left, and an operation whose weights are loaded long
before it runs would be charged with all that runs meanwhile. So the time is divided here, by the same rule,
and the operations' shares are laid out behind each other, in the order in which they had them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Floats, Ints
from neuron_tools.capture.template import Span, Template
from neuron_tools.profile.exposure import CONTROL_OPCODES, Spans, exposed_ns
from neuron_tools.records.program import Opcode

_CONTROL = [opcode.value for opcode in Opcode if opcode.name in CONTROL_OPCODES]


def charged_stretches(template: Template) -> Span:
    """Start and end of each HLO operation's stretch; both are the same where it is charged with nothing.

    The stretches do not overlap. They leave the time out in which nothing of the execution ran.
    """
    tiers = _tiers(template)
    owner = np.concatenate([owners for _, owners in tiers])
    spans = Spans(
        np.concatenate([each.start_ns for each, _ in tiers]),
        np.concatenate([each.end_ns for each, _ in tiers]),
    )
    charged = np.concatenate(exposed_ns([each for each, _ in tiers]))
    idle = _idle(spans)
    owner = np.append(owner, np.full(len(idle.start_ns), -1, np.int64))
    charged = np.append(charged, (idle.end_ns - idle.start_ns).astype(np.float64))
    middle = np.append(spans.start_ns + spans.end_ns, idle.start_ns + idle.end_ns) / 2
    return _laid_out(len(template.program.hlo), owner, charged, middle, len(idle.start_ns))


def _tiers(template: Template) -> list[tuple[Spans, Ints]]:
    """Spans by falling priority, and the HLO operation of each: as an analysis reads them from a profile."""
    program = template.program
    is_control = np.isin(program.instructions["opcode"], _CONTROL)
    hlo = program.instructions["hlo"].astype(np.int64)
    operations = template.framework_rows
    return [
        (_chosen(template.instructions, ~is_control), hlo[~is_control]),
        (Spans(template.dmas.start_ns, template.dmas.end_ns), program.dmas["hlo"].astype(np.int64)),
        (_chosen(template.instructions, is_control), hlo[is_control]),
        (_chosen(template.framework, operations), _own_hlo(template)[operations]),
    ]


def _chosen(spans: Span, mask: npt.NDArray[np.bool_] | Ints) -> Spans:
    return Spans(spans.start_ns[mask], spans.end_ns[mask])


def _own_hlo(template: Template) -> Ints:
    """The first HLO operation that belongs to each framework operation; else the first it was fused into."""
    own = template.first_hlo()
    rows = template.hlo_rows[::-1]
    belongs = template.hlo_framework[rows] >= 0
    own[template.hlo_framework[rows][belongs]] = rows[belongs]
    return own


def _idle(spans: Spans) -> Spans:
    """The gaps between the execution's start and the last end in which no span lies."""
    order = np.argsort(spans.start_ns, kind="stable")
    starts = spans.start_ns[order]
    reached = np.maximum.accumulate(np.append(0, spans.end_ns[order]))[:-1]
    gaps = starts > reached
    return Spans(reached[gaps], starts[gaps])


def _laid_out(operations: int, owner: Ints, charged: Floats, middle: Floats, gaps: int) -> Span:
    """Stretches by operation, as long as its spans are charged with, in the order of their middle.

    Args:
        owner: Operation of each span, -1 for those of none; the last `gaps` keep a stretch each.
        charged: ns of each span.
        middle: Moment in ns around which each lies.
    """
    item = np.where(owner < 0, operations, owner)
    item[len(item) - gaps :] = operations + 1 + np.arange(gaps)
    length = np.bincount(item, charged, operations + 1 + gaps)
    weighted = np.bincount(item, charged * middle, operations + 1 + gaps)
    when = np.divide(weighted, length, out=np.zeros(len(length)), where=length > 0)
    order = np.argsort(when, kind="stable")
    end = np.empty(len(length), np.int64)
    end[order] = np.rint(np.cumsum(length[order])).astype(np.int64)
    start = np.empty(len(length), np.int64)
    start[order] = np.append(0, end[order][:-1])
    return Span(start[:operations], end[:operations])
