/** What a host may set and is told of: everything that makes up a view, and nothing of the data. */

import type { Grouping } from "./grouping.js";
import type { TimeRange } from "./time_range.js";

/** A span, named so that it can be found again. */
export interface SpanRef {
  /** Id of its track. */
  readonly track: string;
  /** Row of the track's table. */
  readonly row: number;
  /** Depth at which it stands on the track; 0 if it is not told. */
  readonly depth?: number;
  readonly startNs: number;
  readonly durationNs: number;
  readonly name: string;
}

/** A note at a point in time. */
export interface Marker {
  readonly timeNs: number;
  readonly text: string;
}

/** What belongs together across tracks. */
export interface Highlight {
  /** By what: a column of the tables. */
  readonly by: "layer" | "operation" | "line" | "raw_framework_id" | "raw_hlo_id" | "name";
  readonly value: string;
  /** What to call it; the value by default. */
  readonly label?: string;
}

/** The state of a view; it fits a URL. */
export interface TimelineView {
  /** What is shown; null for all of the profile. */
  readonly range: TimeRange | null;
  /** The chosen range, of which statistics are shown. */
  readonly selection: TimeRange | null;
  readonly span: SpanRef | null;
  /** Ids of tracks at the top. */
  readonly pinned: readonly string[];
  /** Ids of tracks and of headings that the user closed, or opened where they are closed by default. */
  readonly collapsed: readonly string[];
  readonly expanded: readonly string[];
  readonly highlight: Highlight | null;
  readonly markers: readonly Marker[];
  readonly search: string;
  readonly grouping: Grouping;
}

export const EMPTY_VIEW: TimelineView = {
  range: null,
  selection: null,
  span: null,
  pinned: [],
  collapsed: [],
  expanded: [],
  highlight: null,
  markers: [],
  search: "",
  grouping: "process",
};
