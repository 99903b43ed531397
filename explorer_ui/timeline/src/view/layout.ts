/** Where each heading and track stands, from top to bottom. */

import type { Track } from "../data/track.js";

export const ROW_HEIGHT = 18;
export const HEADING_HEIGHT = 24;
export const COUNTER_HEIGHT = 40;
export const CLOSED_COUNTER_HEIGHT = 20;
/** Tracks deeper than this are closed by default. */
export const DEEP = 4;
/** Rows of a closed track that keep their height, and the height of those below them. */
export const CLOSED_FULL_ROWS = 3;
export const THIN_HEIGHT = 3;
export const CLOSED_THIN_ROWS = 10;
const PADDING = 3;

/** A heading: a process or rank, a core, a group of tracks. */
export interface HeadingRow {
  readonly kind: "heading";
  readonly id: string;
  readonly name: string;
  readonly indent: number;
  readonly y: number;
  readonly height: number;
  readonly isOpen: boolean;
  readonly tracks: readonly Track[];
}

/** A track with its depths below each other. */
export interface TrackRow {
  readonly kind: "track";
  readonly id: string;
  readonly track: Track;
  readonly indent: number;
  readonly y: number;
  readonly height: number;
  readonly isOpen: boolean;
  readonly isPinned: boolean;
  /** Depths with their full height. */
  readonly fullRows: number;
  readonly rowHeight: number;
  /** Depths below those, squeezed. */
  readonly thinRows: number;
}

export type Row = HeadingRow | TrackRow;

export interface Layout {
  /** Above the others, always in sight. */
  readonly pinned: readonly TrackRow[];
  readonly pinnedHeight: number;
  readonly rows: readonly Row[];
  readonly height: number;
}

/** What the user opened, closed and pinned. */
export interface Folding {
  readonly pinned: ReadonlySet<string>;
  readonly collapsed: ReadonlySet<string>;
  readonly expanded: ReadonlySet<string>;
}

/** Id of a heading: the names from the outermost to it. */
export function headingId(headings: readonly string[]): string {
  return `heading:${headings.join(" / ")}`;
}

/** Whether a heading or a track is open. */
export function isOpen(id: string, track: Track | null, folding: Folding): boolean {
  if (folding.collapsed.has(id)) return false;
  if (folding.expanded.has(id)) return true;
  return track === null || track.isCounter || track.depths <= DEEP;
}

/** Lay all tracks out; `isShown` leaves some out. */
export function layOut(tracks: readonly Track[], folding: Folding, isShown: (track: Track) => boolean = () => true): Layout {
  const shown = tracks.filter(isShown);
  const pinned: TrackRow[] = [];
  let pinnedHeight = 0;
  for (const track of shown.filter((one) => folding.pinned.has(one.id))) {
    pinned.push(trackRow(track, 0, pinnedHeight, folding));
    pinnedHeight += pinned[pinned.length - 1]!.height;
  }
  const rows: Row[] = [];
  let y = 0;
  let above: readonly string[] = [];
  for (const track of shown) {
    const shared = sharedLength(above, track.headings);
    const closedAt = firstClosed(track.headings, folding);
    for (let depth = shared; depth < track.headings.length && depth <= closedAt; depth += 1) {
      const headings = track.headings.slice(0, depth + 1);
      const row = headingRow(headings, y, folding, shown);
      rows.push(row);
      y += row.height;
    }
    above = track.headings;
    if (closedAt >= track.headings.length) {
      const row = trackRow(track, track.headings.length, y, folding);
      rows.push(row);
      y += row.height;
    }
  }
  return { pinned, pinnedHeight, rows, height: y };
}

/** Rows between two heights; rows are in order of `y`. */
export function rowsBetween<R extends Row>(rows: readonly R[], top: number, bottom: number): readonly R[] {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.y + rows[middle]!.height <= top) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < rows.length && rows[end]!.y < bottom) end += 1;
  return rows.slice(low, end);
}

/** Top of a depth inside its row, and its height; height 0 where it is not shown. */
export function depthPlace(row: TrackRow, depth: number): { top: number; height: number } {
  if (depth < row.fullRows) return { top: PADDING + depth * row.rowHeight, height: row.rowHeight };
  const thin = depth - row.fullRows;
  if (thin >= row.thinRows) return { top: row.height - PADDING, height: 0 };
  return { top: PADDING + row.fullRows * row.rowHeight + thin * THIN_HEIGHT, height: THIN_HEIGHT };
}

/** The depth that stands at a height inside a row; null between rows. */
export function depthAt(row: TrackRow, y: number): number | null {
  const inside = y - PADDING;
  if (inside < 0) return null;
  const full = Math.floor(inside / row.rowHeight);
  if (full < row.fullRows) return full;
  const thin = Math.floor((inside - row.fullRows * row.rowHeight) / THIN_HEIGHT);
  return thin < row.thinRows ? row.fullRows + thin : null;
}

/** Space above the first depth of a row. */
export const ROW_PADDING = PADDING;

function trackRow(track: Track, indent: number, y: number, folding: Folding): TrackRow {
  const open = isOpen(track.id, track, folding);
  const common = { kind: "track", id: track.id, track, indent, y, isOpen: open, isPinned: folding.pinned.has(track.id) } as const;
  if (track.isCounter) {
    const rowHeight = open ? COUNTER_HEIGHT : CLOSED_COUNTER_HEIGHT;
    return { ...common, height: rowHeight + 2 * PADDING, fullRows: 1, rowHeight, thinRows: 0 };
  }
  const fullRows = open ? track.depths : Math.min(track.depths, CLOSED_FULL_ROWS);
  const thinRows = open ? 0 : Math.min(track.depths - fullRows, CLOSED_THIN_ROWS);
  const height = fullRows * ROW_HEIGHT + thinRows * THIN_HEIGHT + 2 * PADDING;
  return { ...common, height, fullRows, rowHeight: ROW_HEIGHT, thinRows };
}

function headingRow(headings: readonly string[], y: number, folding: Folding, tracks: readonly Track[]): HeadingRow {
  const id = headingId(headings);
  const inside = tracks.filter((track) => headings.every((name, depth) => track.headings[depth] === name));
  return {
    kind: "heading",
    id,
    name: headings[headings.length - 1]!,
    indent: headings.length - 1,
    y,
    height: HEADING_HEIGHT,
    isOpen: isOpen(id, null, folding),
    tracks: inside,
  };
}

function sharedLength(some: readonly string[], others: readonly string[]): number {
  let length = 0;
  while (length < some.length && length < others.length && some[length] === others[length]) length += 1;
  return length;
}

/** Depth of the outermost closed heading; the number of headings where all are open. */
function firstClosed(headings: readonly string[], folding: Folding): number {
  for (let depth = 0; depth < headings.length; depth += 1) {
    if (!isOpen(headingId(headings.slice(0, depth + 1)), null, folding)) return depth;
  }
  return headings.length;
}
