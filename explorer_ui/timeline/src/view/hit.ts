/** Finds what stands at a point of the plot. */

import type { SpanChunk } from "../data/chunk.js";
import type { NameTable } from "../data/names.js";
import { bucketNs } from "../data/tile.js";
import type { TrackRow } from "./layout.js";
import type { Placed } from "./scene.js";
import type { TimeScale } from "./time_scale.js";

/** A span, or a bucket with several. */
export interface SpanHit {
  readonly kind: "span";
  readonly row: TrackRow;
  readonly depth: number;
  readonly name: string;
  /** Row of the track's table: of a bucket, that of its longest span. */
  readonly tableRow: number;
  readonly startNs: number;
  readonly durationNs: number;
  readonly isBucket: boolean;
  /** Spans that begin here. */
  readonly count: number;
  readonly busyShare: number;
  readonly bucketNs: number;
}

/** A counter's value. */
export interface SampleHit {
  readonly kind: "sample";
  readonly row: TrackRow;
  readonly timeNs: number;
  readonly least: number;
  readonly greatest: number;
  readonly mean: number;
  readonly count: number;
}

export type Hit = SpanHit | SampleHit;

/** Pixels that a narrow span may be missed by. */
const REACH = 2;

/** What stands at a pixel of a row; null for nothing. */
export function hitTest(
  placed: readonly Placed[],
  row: TrackRow,
  depth: number,
  x: number,
  scale: TimeScale,
  names: NameTable,
): Hit | null {
  for (const part of placed) {
    if (x < part.clipLeft || x >= part.clipRight) continue;
    const found = part.chunk.kind === "spans"
      ? spanAt(part.chunk, part, row, depth, x, scale, names)
      : sampleAt(part, row, x, scale);
    if (found) return found;
  }
  return null;
}

/** A row of a chunk as a hit. */
export function spanHit(chunk: SpanChunk, at: number, part: Placed, row: TrackRow, names: NameTable): SpanHit {
  return {
    kind: "span",
    row,
    depth: chunk.depth[at]!,
    name: names.text(chunk.name[at]!),
    tableRow: chunk.row[at]!,
    startNs: part.startNs + chunk.start[at]!,
    durationNs: chunk.duration[at]!,
    isBucket: chunk.isBucket[at] === 1,
    count: chunk.count[at]!,
    busyShare: chunk.busy[at]! / 255,
    bucketNs: bucketNs(part.level),
  };
}

function spanAt(
  chunk: SpanChunk,
  part: Placed,
  row: TrackRow,
  depth: number,
  x: number,
  scale: TimeScale,
  names: NameTable,
): SpanHit | null {
  const [first, end] = depthRange(chunk, depth);
  const timeNs = scale.toNs(x) - part.startNs;
  const reachNs = REACH * scale.nsPerPixel;
  const unit = bucketNs(part.level);
  let best = -1;
  let bestGap = reachNs;
  for (let at = first; at < end; at += 1) {
    const start = chunk.start[at]!;
    if (start > timeNs + reachNs) break;
    const stop = start + (chunk.isBucket[at] ? unit : chunk.duration[at]!);
    const gap = timeNs < start ? start - timeNs : timeNs > stop ? timeNs - stop : 0;
    if (gap < bestGap || (gap === 0 && bestGap === 0)) {
      best = at;
      bestGap = gap;
    }
  }
  return best < 0 ? null : spanHit(chunk, best, part, row, names);
}

function sampleAt(part: Placed, row: TrackRow, x: number, scale: TimeScale): SampleHit | null {
  const chunk = part.chunk;
  if (chunk.kind !== "samples") return null;
  const unit = bucketNs(part.level);
  const bucket = (scale.toNs(x) - part.startNs) / unit;
  let low = 0;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chunk.bucket[middle]! <= bucket) low = middle + 1;
    else high = middle;
  }
  const at = low - 1;
  if (at < 0) return null;
  return {
    kind: "sample",
    row,
    timeNs: part.startNs + chunk.bucket[at]! * unit,
    least: chunk.least[at]!,
    greatest: chunk.greatest[at]!,
    mean: chunk.mean[at]!,
    count: chunk.count[at]!,
  };
}

/** First row of a depth, and the row after its last; rows are in order of depth. */
export function depthRange(chunk: SpanChunk, depth: number): readonly [number, number] {
  const place = (wanted: number): number => {
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (chunk.depth[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [place(depth), place(depth + 1)];
}
