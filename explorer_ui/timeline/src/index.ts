/** The public part of the engine; see README.md. */

export { type DataSource, HttpSource, SourceError } from "./data/source.js";
export type { ProfileSummary, Track } from "./data/track.js";
export type { PaletteName } from "./draw/palette.js";
export type { PainterChoice } from "./draw/painter_choice.js";
export { DARK, LIGHT, type Theme, type ThemeChoice } from "./draw/theme.js";
export type { Selection, SourcePlace, TimelineHandle, TimelineOptions, TimelineStatistics } from "./options.js";
export { createTimeline } from "./timeline.js";
export type { TimeRange } from "./view/time_range.js";
export { EMPTY_VIEW, type Highlight, type Marker, type SpanRef, type TimelineView } from "./view/view_state.js";
