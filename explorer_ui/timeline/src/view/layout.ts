/** Where each heading and track stands, from top to bottom. */

import type { Track } from "../data/track.js";

export const ROW_HEIGHT = 18;
export const HEADING_HEIGHT = 24;
export const IDLE_HEIGHT = 20;
export const COUNTER_HEIGHT = 40;
export const CLOSED_COUNTER_HEIGHT = 20;
/** Tracks deeper than this are closed by default. */
export const DEEP = 4;
/** Rows of a closed track that keep their height, and the height of those below them. */
export const CLOSED_FULL_ROWS = 3;
/** The same of findings and warnings, which stand above everything else. */
const CLOSED_BAND_ROWS = 1;
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
  /** Whether it stands for idle tracks, which it folds into one thin row. */
  readonly idle: boolean;
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

/** Whether a heading or a track is open; a track of charged time is when it shows the spans themselves. */
export function isOpen(id: string, track: Track | null, folding: Folding): boolean {
  if (track?.charged) return folding.expanded.has(id);
  if (folding.collapsed.has(id)) return false;
  if (folding.expanded.has(id)) return true;
  if (track?.isBand) return track.depths <= CLOSED_BAND_ROWS;
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
  const put = (row: Row): void => {
    rows.push(row);
    y += row.height;
  };
  let above: readonly string[] = [];
  for (const group of grouped(shown, folding)) {
    const { headings } = group;
    const closedAt = firstClosed(headings, folding);
    for (let depth = sharedLength(above, headings); depth < headings.length && depth <= closedAt; depth += 1) {
      put(headingRow(headings.slice(0, depth + 1), y, folding, shown));
    }
    above = headings;
    if (closedAt < headings.length) continue;
    const [first] = group.tracks;
    if (!group.isIdle) put(trackRow(first!, headings.length, y, folding));
    else {
      const row = idleRow(group, y, folding);
      put(row);
      if (row.isOpen) for (const track of group.tracks) put(trackRow(track, headings.length + 1, y, folding));
    }
  }
  return { pinned, pinnedHeight, rows, height: y };
}

/** A track, or idle tracks that follow each other, and what stands above. */
interface Group {
  readonly headings: readonly string[];
  readonly tracks: Track[];
  readonly isIdle: boolean;
}

/** Tracks in order, idle ones that follow each other under the same heading together. */
function grouped(tracks: readonly Track[], folding: Folding): Group[] {
  const isIdle = (track: Track): boolean => track.isIdle && !folding.pinned.has(track.id) && !folding.expanded.has(track.id);
  const used = new Set<string>();
  for (const track of tracks) {
    if (!isIdle(track)) track.headings.forEach((_, depth) => used.add(headingId(track.headings.slice(0, depth + 1))));
  }
  const groups: Group[] = [];
  for (const track of tracks) {
    if (!isIdle(track)) {
      groups.push({ headings: track.headings, tracks: [track], isIdle: false });
      continue;
    }
    const headings = track.headings.filter((_, depth) => depth === 0 || used.has(headingId(track.headings.slice(0, depth + 1))));
    const last = groups.at(-1);
    if (last?.isIdle && headingId(last.headings) === headingId(headings)) last.tracks.push(track);
    else groups.push({ headings, tracks: [track], isIdle: true });
  }
  return groups;
}

function idleRow(group: Group, y: number, folding: Folding): HeadingRow {
  const id = `idle:${group.tracks[0]!.id}`;
  const { length } = group.tracks;
  return {
    kind: "heading",
    id,
    name: length === 1 ? `${group.tracks[0]!.name}, idle` : `${length} idle tracks`,
    indent: group.headings.length,
    y,
    height: IDLE_HEIGHT,
    isOpen: folding.expanded.has(id),
    tracks: group.tracks,
    idle: true,
  };
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

function trackRow(whole: Track, indent: number, y: number, folding: Folding): TrackRow {
  const open = isOpen(whole.id, whole, folding);
  const track = open ? whole : (whole.charged ?? whole);
  const common = { kind: "track", id: track.id, track, indent, y, isOpen: open, isPinned: folding.pinned.has(track.id) } as const;
  if (track.isCounter) {
    const rowHeight = open ? COUNTER_HEIGHT : CLOSED_COUNTER_HEIGHT;
    return { ...common, height: rowHeight + 2 * PADDING, fullRows: 1, rowHeight, thinRows: 0 };
  }
  const fullRows = open ? track.depths : Math.min(track.depths, track.isBand ? CLOSED_BAND_ROWS : CLOSED_FULL_ROWS);
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
    idle: false,
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
