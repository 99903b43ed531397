/** Edges that times snap to: begins and ends of spans near the pointer. */

import type { DrawnRow } from "../draw/frame.js";
import type { TimeScale } from "../view/time_scale.js";

/** An edge so near pulls a time to it. */
export const SNAP_PIXELS = 6;

/**
 * The edge of a span that is nearest to a pixel: on the row at a height if there is one near, else on any row in sight.
 *
 * @returns The edge's time; null where none is near.
 */
export function nearestEdge(rows: readonly DrawnRow[], scale: TimeScale, x: number, y: number | null): number | null {
  const here = y === null ? undefined : rows.find((one) => y >= one.top && y < one.top + one.row.height);
  return (here && edgeOf([here], scale, x)) ?? edgeOf(rows, scale, x);
}

function edgeOf(rows: readonly DrawnRow[], scale: TimeScale, x: number): number | null {
  const timeNs = scale.toNs(x);
  let best: number | null = null;
  let gap = SNAP_PIXELS * scale.nsPerPixel;
  for (const { placed } of rows) {
    for (const part of placed) {
      const { chunk } = part;
      if (chunk.kind !== "spans" || x < part.clipLeft - SNAP_PIXELS || x > part.clipRight + SNAP_PIXELS) continue;
      for (let at = 0; at < chunk.length; at += 1) {
        if (chunk.isBucket[at]) continue; // several spans, whose edges are not known
        const start = part.startNs + chunk.start[at]!;
        for (const edge of [start, start + chunk.duration[at]!]) {
          if (Math.abs(edge - timeNs) > gap) continue;
          gap = Math.abs(edge - timeNs);
          best = Math.round(edge);
        }
      }
    }
  }
  return best;
}
