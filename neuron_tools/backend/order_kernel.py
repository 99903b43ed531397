"""Compiled search for what must come before what, whoever runs it: the order that any schedule keeps.

Every bucket of lines keeps its live writes and the reads since. A read follows the writes that it overlaps;
a write follows reads and writes, and removes those that it covers. Where a buffer takes the place of others,
its calls follow *release* nodes, one a buffer, which follow all calls on that buffer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.backend.access_lists import bounds_of, bucket_range, covers, overlap, region_of, unlink
from neuron_tools.compiled import by_group, compiled, grown

AFTER_RESULT, AFTER_START = 0, 1
"""What an edge asks for: the producer's result, or only that it runs before on the same engine."""


@compiled
def order_edges(
    rows: Int32s,
    regions: Int32s,
    tracked: npt.NDArray[np.bool_],
    bucket_start: Ints,
    released: npt.NDArray[np.bool_],
    predecessor_start: Ints,
    predecessors: Ints,
) -> tuple[Ints, Ints, npt.NDArray[np.int8]]:
    """Edges of the order; O(rows x live accesses of a bucket).

    Args:
        rows: (n, COLUMNS) calls.
        regions: (m, 5).
        tracked: (buffers,) whether accesses can conflict at all.
        bucket_start: (buffers + 1,) buckets of each; the last of a buffer is for accesses over several.
        released: (buffers,) whether somebody takes the place of it.
        predecessor_start, predecessors: Buffers whose place each takes (CSR).

    Returns:
        (before, after, what): node n + b is the release of buffer b; `what` is AFTER_RESULT or AFTER_START.
    """
    count = rows.shape[0]
    buckets = bucket_start[-1]
    head = np.full((2, buckets), -1, np.int32)  # reads, writes
    capacity = max(1024, count * 3)
    link = np.empty(capacity, np.int32)
    node_row = np.empty(capacity, np.int32)
    node_region = np.empty(capacity, np.int32)
    used = 0
    before = np.empty(max(1024, count * 4), np.int64)
    after = np.empty(before.shape[0], np.int64)
    what = np.empty(before.shape[0], np.int8)
    edges = 0
    for row in range(count):
        for slot in range(6):
            operand = slot + 2 if slot < 4 else slot - 4  # reads first, then writes
            region = region_of(rows, regions, tracked, row, operand)
            if region < 0:
                continue
            buffer = regions[region, 0]
            writes = 1 if operand < 2 else 0
            need = predecessor_start[buffer + 1] - predecessor_start[buffer] + 2
            while edges + need >= before.shape[0]:
                room = before.shape[0] * 2
                before, after, what = grown(before, room), grown(after, room), grown(what, room)
            if writes:
                for at in range(predecessor_start[buffer], predecessor_start[buffer + 1]):
                    before[edges], after[edges], what[edges] = count + predecessors[at], row, AFTER_RESULT
                    edges += 1
            if released[buffer]:
                before[edges], after[edges], what[edges] = row, count + buffer, AFTER_RESULT
                edges += 1
            begin, finish, last_bucket, spans = bucket_range(bucket_start, regions, region)
            bounds = bounds_of(regions, region)
            for kind in range(1 - writes, 2):
                for step in range(begin, finish + 2):
                    bucket = step if step <= finish else last_bucket
                    previous = np.int32(-1)
                    node = head[kind, bucket]
                    while node >= 0:
                        other = node_region[node]
                        following = link[node]
                        removed = False
                        if overlap(bounds, bounds_of(regions, other)):
                            if node_row[node] != row:
                                if edges == before.shape[0]:
                                    room = before.shape[0] * 2
                                    before, after = grown(before, room), grown(after, room)
                                    what = grown(what, room)
                                before[edges], after[edges] = node_row[node], row
                                what[edges] = AFTER_START if writes else AFTER_RESULT
                                edges += 1
                            removed = writes == 1 and covers(bounds, bounds_of(regions, other))
                        if removed:
                            unlink(head[kind], link, bucket, previous, node)
                        else:
                            previous = node
                        node = following
            if used == link.shape[0]:
                room = used * 2
                link = grown(link, room)
                node_row, node_region = grown(node_row, room), grown(node_region, room)
            home = last_bucket if spans else begin
            node_row[used], node_region[used] = row, region
            link[used] = head[writes, home]
            head[writes, home] = used
            used += 1
    return before[:edges], after[:edges], what[:edges]


@compiled
def successors(nodes: int, before: Ints, after: Ints) -> tuple[Ints, Int32s, Int32s]:
    """Edges by producer: (start (nodes + 1,), edge of each place, how many edges lead to each node)."""
    incoming = np.zeros(nodes, np.int32)
    for node in after:
        incoming[node] += 1
    start, edges = by_group(before, nodes)
    return start, edges, incoming
