/** Sums over what is in sight: how busy each track is, and its spans as rows for those who cannot see them. */

import type { SpanChunk } from "../data/chunk.js";
import { bucketNs } from "../data/tile.js";
import type { DrawnRow } from "../draw/frame.js";
import type { NameTable } from "../data/names.js";
import { spanHit, type SpanHit } from "../view/hit.js";
import type { Placed } from "../view/scene.js";
import { lengthOf, type TimeRange } from "../view/time_range.js";

export interface SightSum {
  /** Spans that begin in sight, of all depths. */
  readonly count: number;
  /** Share of the time in which the first depth is busy, 0 to 1. */
  readonly busyShare: number;
}

/** Sums of one row over a range; null for counters and where data is missing. */
export function sightSum(drawn: DrawnRow, range: TimeRange): SightSum | null {
  if (drawn.row.track.isCounter || drawn.placed.length === 0) return null;
  let [count, busyNs] = [0, 0];
  for (const part of drawn.placed) {
    if (part.chunk.kind !== "spans") continue;
    const sum = chunkSum(part.chunk, part, range);
    count += sum.count;
    busyNs += sum.busyNs;
  }
  return { count, busyShare: Math.min(busyNs / lengthOf(range), 1) };
}

/** A chunk covers its tile only: spans are cut to it. */
function chunkSum(chunk: SpanChunk, part: Placed, range: TimeRange): { count: number; busyNs: number } {
  const unit = bucketNs(part.level);
  const low = Math.max(range.startNs - part.startNs, 0);
  const high = Math.min(range.endNs - part.startNs, unit * 1024);
  let [count, busyNs] = [0, 0];
  for (let at = 0; at < chunk.length; at += 1) {
    const start = chunk.start[at]!;
    const isBucket = chunk.isBucket[at] === 1;
    const end = start + (isBucket ? unit : chunk.duration[at]!);
    if (end <= low || start >= high) continue;
    if (start >= low) count += chunk.count[at]!;
    if (chunk.depth[at] !== 0) continue;
    busyNs += (Math.min(end, high) - Math.max(start, low)) * (isBucket ? chunk.busy[at]! / 255 : 1);
  }
  return { count, busyNs };
}

/** Spans and buckets in sight, row by row, at most so many of each row. */
export function spansInSight(rows: readonly DrawnRow[], range: TimeRange, names: NameTable, mostPerRow: number): SpanHit[] {
  const found: SpanHit[] = [];
  for (const { row, placed } of rows) {
    let ofRow = 0;
    for (const part of placed) {
      const chunk = part.chunk;
      if (chunk.kind !== "spans") continue;
      for (let at = 0; at < chunk.length && ofRow < mostPerRow; at += 1) {
        const start = part.startNs + chunk.start[at]!;
        const length = chunk.isBucket[at] ? bucketNs(part.level) : chunk.duration[at]!;
        if (start + length <= range.startNs || start >= range.endNs) continue;
        found.push(spanHit(chunk, at, part, row, names));
        ofRow += 1;
      }
    }
  }
  return found;
}
