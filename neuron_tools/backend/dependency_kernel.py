"""Compiled search for dependencies: which earlier accesses each operand must wait for.

Every buffer keeps its live accesses: writes, and reads since. A write waits for all that it overlaps and
removes those that it covers, because whoever comes later waits for it instead; a read waits for writes only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.backend.access_lists import bounds_of, bucket_range, covers, overlap, region_of, unlink
from neuron_tools.compiled import compiled, grown


@compiled
def find_dependencies(
    rows: Int32s,
    regions: Int32s,
    tracked: npt.NDArray[np.bool_],
    bucket_start: Ints,
    predecessor_start: Ints,
    predecessors: Ints,
    streams: Int32s,
    same_stream: npt.NDArray[np.bool_],
) -> tuple[Ints, Ints, Int32s, Ints]:
    """Edges between rows, and for every read the write of its own stream that it follows.

    Args:
        rows: (n, ROW_WIDTH) trace rows.
        regions: (m, REGION_WIDTH).
        tracked: (buffers,) whether accesses can conflict at all.
        bucket_start: (buffers + 1,) buckets of each buffer; the last bucket of a buffer is for accesses
            over several.
        predecessor_start, predecessors: Buffers whose place each buffer takes (CSR).
        streams: (n,) stream in which each row completes.
        same_stream: (streams,) whether rows of the stream are ordered among themselves, so that no edge is
            needed between them.

    Returns:
        (rows, producers, slots, hazard): edge i holds operand `slots[i]` of `rows[i]` until `producers[i]` is
        complete; hazard (4 n,) is the last row of the same stream that writes what each read slot reads.
    """
    count = rows.shape[0]
    buckets = bucket_start[-1]
    head = np.full(buckets, -1, np.int32)
    capacity = max(1024, count * 3)
    link = np.empty(capacity, np.int32)
    node_row = np.empty(capacity, np.int32)
    node_region = np.empty(capacity, np.int32)
    node_write = np.empty(capacity, np.bool_)
    used = 0
    released = np.zeros(tracked.shape[0], np.bool_)
    for before in predecessors:
        released[before] = True
    edge_capacity = max(1024, count * 2)
    edge_row = np.empty(edge_capacity, np.int64)
    edge_slot = np.empty(edge_capacity, np.int32)
    edge_producer = np.empty(edge_capacity, np.int64)
    edges = 0
    hazard = np.full(count * 4, -1, np.int64)
    stream_count = same_stream.shape[0]
    latest = np.full(stream_count, -1, np.int64)
    last_access = np.full((tracked.shape[0], stream_count), -1, np.int32)
    for row in range(count):
        for slot in range(6):
            # reads (slots 2..5) first, then writes
            operand = slot + 2 if slot < 4 else slot - 4
            region = region_of(rows, regions, tracked, row, operand)
            if region < 0:
                continue
            buffer = regions[region, 0]
            writes = operand < 2
            touched = 0
            if writes:
                for at in range(predecessor_start[buffer], predecessor_start[buffer + 1]):
                    before = predecessors[at]
                    for stream in range(stream_count):
                        producer = last_access[before, stream]
                        if producer > latest[stream]:
                            latest[stream] = producer
                            touched = 1
            if released[buffer]:
                last_access[buffer, streams[row]] = row
            begin, finish, last_bucket, spans = bucket_range(bucket_start, regions, region)
            bounds = bounds_of(regions, region)
            for step in range(begin, finish + 2):
                bucket = step if step <= finish else last_bucket
                previous = np.int32(-1)
                node = head[bucket]
                while node >= 0:
                    other = node_region[node]
                    following = link[node]
                    removed = False
                    if overlap(bounds, bounds_of(regions, other)):
                        producer = node_row[node]
                        waits = (writes or node_write[node]) and producer != row
                        if waits and producer > latest[streams[producer]]:
                            latest[streams[producer]] = producer
                            touched = 1
                        if writes or (not node_write[node] and streams[producer] == streams[row]):
                            removed = covers(bounds, bounds_of(regions, other))
                    if removed:
                        unlink(head, link, bucket, previous, node)
                    else:
                        previous = node
                    node = following
            if touched:
                for stream in range(stream_count):
                    producer = latest[stream]
                    if producer >= 0:
                        latest[stream] = -1
                        if producer == row:
                            continue
                        if stream == streams[row] and same_stream[stream]:
                            if operand >= 2:
                                hazard[row * 4 + operand - 2] = producer
                            continue
                        if edges == edge_capacity:
                            edge_capacity *= 2
                            edge_row = grown(edge_row, edge_capacity)
                            edge_slot = grown(edge_slot, edge_capacity)
                            edge_producer = grown(edge_producer, edge_capacity)
                        edge_row[edges], edge_slot[edges], edge_producer[edges] = row, operand, producer
                        edges += 1
            if used == capacity:
                capacity *= 2
                link = grown(link, capacity)
                node_row = grown(node_row, capacity)
                node_region = grown(node_region, capacity)
                node_write = grown(node_write, capacity)
            home = last_bucket if spans else begin
            node_row[used], node_region[used], node_write[used] = row, region, writes
            link[used] = head[home]
            head[home] = used
            used += 1
    return edge_row[:edges], edge_producer[:edges], edge_slot[:edges], hazard
