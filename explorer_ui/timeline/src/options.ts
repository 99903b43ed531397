/** What hosts give to a timeline, and what they get back. */

import type { DataSource } from "./data/source.js";
import type { ProfileSummary } from "./data/track.js";
import type { PainterChoice } from "./draw/painter_choice.js";
import type { ThemeChoice } from "./draw/theme.js";
import type { TimeRange } from "./view/time_range.js";
import type { Highlight, Marker, SpanRef, TimelineView } from "./view/view_state.js";

/** A place in a source file. */
export interface SourcePlace {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
}

/** What the user chose: a span with all that is known of it, a range, or nothing. */
export interface Selection {
  readonly span: SpanRef | null;
  readonly range: TimeRange | null;
  /** Columns of the span's row; arrives a moment after the span. */
  readonly details: Readonly<Record<string, unknown>> | null;
  readonly source: SourcePlace | null;
}

/** Markers that were saved under a name. */
export interface SavedMarkers {
  readonly name: string;
  /** What the profile is called that they are of. */
  readonly profile: string;
  /** Whether they are of the profile that is shown. */
  readonly isOwn: boolean;
  /** In order of time. */
  readonly markers: readonly Marker[];
}

export interface MarkerSets {
  readonly sets: readonly SavedMarkers[];
  readonly canSave: boolean;
}

/** Where markers are saved. */
export interface MarkerStore {
  load(): Promise<MarkerSets>;
  /** Keep markers of this profile under a name; none forget it. */
  save(name: string, markers: readonly Marker[]): Promise<MarkerSets>;
}

/** A profile that the one of a timeline is compared with. */
export interface ComparedProfile {
  readonly source: DataSource;
  /** What it is called here; as in its data by default. */
  readonly name?: string;
  /** How much later its time is at the same point of the axis, in ns; both begin there by default. */
  readonly shiftNs?: number;
}

export interface TimelineOptions {
  readonly source: DataSource;
  /** Where markers are saved; without it they stand in the view only. */
  readonly markerStore?: MarkerStore;
  /** Profiles to compare with: their tracks stand below those of the first, aligned by their hierarchy. */
  readonly compare?: readonly ComparedProfile[];
  /** What the figures beside the timeline are of: its findings are simulated for it; all of the profile by default. */
  readonly scope?: TimeRange | null;
  readonly theme?: ThemeChoice;
  readonly view?: Partial<TimelineView>;
  readonly painter?: PainterChoice;
  /** Bytes that data may take in this page. */
  readonly budgetBytes?: number;
  /** Whether the bar with search and buttons, and the panel with details, are shown; true by default. */
  readonly chrome?: boolean;
  /** The view came to rest somewhere else. */
  readonly onViewChange?: (view: TimelineView) => void;
  readonly onSelect?: (selection: Selection) => void;
  /** The user asked for the source of a span. */
  readonly onOpenSource?: (place: SourcePlace) => void;
  readonly onError?: (error: Error) => void;
}

/** How drawing goes, for measurements. */
export interface TimelineStatistics {
  readonly painter: "webgl2" | "canvas2d";
  readonly frames: number;
  /** Milliseconds of script of the last frames, the newest last. */
  readonly frameMs: readonly number[];
  readonly cacheBytes: number;
  readonly chunks: number;
  /** Whether everything in sight is drawn from data of its own resolution, what is lit up and compared too. */
  readonly isSharp: boolean;
  /** When that became so, by `performance.now()`; 0 while it is not. */
  readonly sharpAt: number;
}

export interface TimelineHandle {
  /** Resolves when the tracks are known and the first data is drawn. */
  readonly ready: Promise<ProfileSummary>;
  readonly view: TimelineView;
  setView(view: Partial<TimelineView>): void;
  /** Choose a span, a range, or nothing; the view moves there. */
  setSelection(selection: { span?: SpanRef | null; range?: TimeRange | null }): void;
  /** Light up what belongs together on every track; null for all as before. */
  highlight(highlight: Highlight | null): void;
  /** Search names, or `column=value`; an empty text stops. */
  searchFor(text: string): void;
  /** Findings are shown for another range; null for all of the profile. */
  setScope(scope: TimeRange | null): void;
  setTheme(theme: ThemeChoice): void;
  /** Show the details of what is chosen in another element, not below the plot. */
  detailsInto(place: HTMLElement): void;
  /** Read the profile again, which has grown; the view stays. */
  refresh(): Promise<void>;
  statistics(): TimelineStatistics;
  destroy(): void;
}
