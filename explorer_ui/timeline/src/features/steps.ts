/** Moving by keys: from row to row, and from span to span on a row. */

import type { Core } from "../core.js";
import type { DrawnRow } from "../draw/frame.js";
import { depthRange, spanHit, type SpanHit } from "../view/hit.js";
import type { Row } from "../view/layout.js";
import { moved, lengthOf } from "../view/time_range.js";

/** The row above or below the active one; the first in sight where none is active. */
export function nextRow(core: Core, by: 1 | -1): Row | null {
  const rows: readonly Row[] = [...core.layout.pinned, ...core.layout.rows];
  if (rows.length === 0) return null;
  const at = rows.findIndex((row) => row.id === core.activeId);
  if (at < 0) return core.layout.rows.find((row) => row.y >= core.viewport.scrollTop) ?? rows[0]!;
  return rows[Math.min(Math.max(at + by, 0), rows.length - 1)]!;
}

/** The row that is active. */
export function activeRow(core: Core): Row | null {
  return [...core.layout.pinned, ...core.layout.rows].find((row) => row.id === core.activeId) ?? null;
}

/** The span before or after another on its track and depth, among those in sight; the first or last without one. */
export function nextSpan(core: Core, drawn: DrawnRow, by: 1 | -1): SpanHit | null {
  const { span } = core.view;
  const isHere = span?.track === drawn.row.track.id;
  const depth = isHere ? (span.depth ?? 0) : 0;
  const { startNs, endNs } = core.viewport.range;
  let best: SpanHit | null = null;
  for (const part of drawn.placed) {
    const chunk = part.chunk;
    if (chunk.kind !== "spans") continue;
    const [first, end] = depthRange(chunk, depth);
    for (let at = first; at < end; at += 1) {
      const start = part.startNs + chunk.start[at]!;
      if (start + chunk.duration[at]! < startNs || start > endNs) continue;
      if (isHere && (by > 0 ? start <= span.startNs : start >= span.startNs)) continue;
      if (best && (by > 0 ? start >= best.startNs : start <= best.startNs)) continue;
      best = spanHit(chunk, at, part, drawn.row, core.names);
    }
  }
  return best;
}

/** Move the view a part of its width, so that spans beyond its edge come into sight. */
export function pageTime(core: Core, by: 1 | -1): void {
  const { range } = core.viewport;
  core.show(moved(range, by * lengthOf(range) * 0.6));
}
