/** What all features share: the profile, the state of the view, its data, and how to draw anew. */

import { ChunkCache } from "./data/chunk_cache.js";
import { NameTable } from "./data/names.js";
import type { DataSource } from "./data/source.js";
import { type Origin, TileLoader } from "./data/tile_loader.js";
import { BAND_PLACES, CHARGED_PLACES, type ProfileSummary, type Track } from "./data/track.js";
import { type ColourBy, engineSlot, isGrouped, type NamedEngines, NO_NAMES } from "./draw/engine_colours.js";
import { NO_OVERLAYS, type Overlays, type SpanMark } from "./draw/overlays.js";
import type { Renderer } from "./draw/renderer.js";
import type { Theme } from "./draw/theme.js";
import { RULER_HEIGHT } from "./panels/stylesheet.js";
import type { Comparison } from "./features/comparison.js";
import { regrouped } from "./view/grouping.js";
import { headingId, type Layout, layOut, type Row } from "./view/layout.js";
import { lengthOf, moved, type TimeRange } from "./view/time_range.js";
import { type SpanRef, type TimelineView } from "./view/view_state.js";
import { Viewport } from "./view/viewport.js";

const EMPTY_LAYOUT: Layout = { pinned: [], pinnedHeight: 0, rows: [], height: 0 };
/** A span that is brought into sight has at least this many pixels, and this share of the width when it had fewer. */
const SEEN_PIXELS = 3;
const SEEN_SHARE = 0.12;
/** Where engines work for less than this share of a profile, the mini-map leaves the rest out. */
const MAP_SHARE = 0.5;

/** What of the view changed. */
export type ViewPart = keyof TimelineView | "scroll" | "layout" | "size";
type Listener = (changed: ReadonlySet<ViewPart>) => void;

export class Core {
  readonly viewport = new Viewport();
  readonly names = new NameTable();
  readonly abort = new AbortController();
  readonly cache: ChunkCache;
  readonly loader: TileLoader;
  summary: ProfileSummary | null = null;
  layout: Layout = EMPTY_LAYOUT;
  overlays: Overlays = NO_OVERLAYS;
  /** The row that keys act on. */
  activeId: string | null = null;
  /** The profile beside those that it is compared with. */
  comparison: Comparison | null = null;
  theme: Theme;
  private colourBy: ColourBy = "engine";
  private namedEngines: NamedEngines = NO_NAMES;
  private renderer: Renderer | null = null;
  private readonly listeners: Listener[] = [];
  private byId = new Map<string, Track>();
  /** Findings and warnings, above all other tracks, and the scope that they are of. */
  private bands: readonly Track[] = [];
  private bandParams: Readonly<Record<string, string>> = {};

  constructor(
    readonly source: DataSource,
    public view: TimelineView,
    theme: Theme,
    budgetBytes: number | undefined,
    onError: (error: unknown) => void,
  ) {
    this.theme = theme;
    this.cache = new ChunkCache(budgetBytes, (chunk) => this.renderer?.release(chunk));
    this.loader = new TileLoader(
      (track) => this.originOf(track),
      this.cache,
      this.names,
      () => this.redraw(),
      onError,
      null,
      (track, name) => this.slot(track, name),
    );
  }

  /** Slot of the palette of a name on a track. */
  private slot(track: Track, name: number): number {
    if (track.isBand) return engineSlot(track, "", this.namedEngines);
    const compared = this.comparison?.slot(track, name);
    if (compared !== undefined) return compared;
    return this.colourBy === "name" ? this.names.slot(name) : engineSlot(track, this.names.text(name), this.namedEngines);
  }

  /** Draw all anew with other colours. */
  recolour(change: { readonly by?: ColourBy; readonly engines?: NamedEngines }): void {
    this.colourBy = change.by ?? this.colourBy;
    if (change.by) this.loader.want([]); // what is on its way has the colours of before
    this.namedEngines = change.engines ?? this.namedEngines;
    const isNamed = (track: Track): boolean => track.level === "engine" || track.level in this.namedEngines.operations;
    const named = new Set((this.summary?.tracks ?? []).filter(isNamed).map((track) => track.place));
    this.cache.clear((place) => change.by !== undefined || named.has(place & ~CHARGED_PLACES));
    this.redraw();
  }

  /** What the mini-map shows: the time in which engines work, where that is a small part of all. */
  get mapBounds(): TimeRange {
    const { bounds } = this.viewport;
    const engines = (this.summary?.tracks ?? []).filter((track) => track.base === 0 && track.level === "engine" && track.spans > 0);
    if (engines.length === 0) return bounds;
    const startNs = Math.min(...engines.map((track) => track.startNs));
    const endNs = Math.max(...engines.map((track) => track.endNs));
    if (endNs - startNs > MAP_SHARE * lengthOf(bounds)) return bounds;
    const margin = (endNs - startNs) * 0.02 + 1;
    return { startNs: Math.max(bounds.startNs, startNs - margin), endNs: Math.min(bounds.endNs, endNs + margin) };
  }

  attach(renderer: Renderer): void {
    this.renderer = renderer;
  }

  /** Where a track's data comes from. */
  originOf(track: Track): Origin {
    if (track.isBand) return { source: this.source, params: this.bandParams };
    if (track.base > 0 && this.comparison) return this.comparison.originOf(track);
    return { source: this.source, params: isGrouped(this.colourBy) && !track.isCounter ? { color: this.colourBy } : {} };
  }

  /** Hear of changes of the view. */
  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Draw with the next frame. */
  redraw(): void {
    this.renderer?.invalidate();
  }

  open(summary: ProfileSummary): void {
    this.summary = summary;
    this.byId = new Map(summary.tracks.map((track) => [track.id, track]));
    this.viewport.bounds = { startNs: summary.startNs, endNs: summary.endNs };
    this.viewport.show(this.view.range ?? this.viewport.bounds);
    this.layTracksOut();
  }

  /** Fold other tracks as idle; the row at the top of the view stays where it is. */
  setIdle(isIdle: (track: Track) => boolean): void {
    if (!this.summary) return;
    const told = this.summary.tracks.map((track) => (isIdle(track) === track.isIdle ? track : withIdle(track, !track.isIdle)));
    if (told.every((track, place) => track === this.summary!.tracks[place])) return;
    this.summary = { ...this.summary, tracks: told };
    this.byId = new Map(told.map((track) => [track.id, track]));
    const { scrollTop } = this.viewport;
    const top = this.layout.rows.find((row) => row.y + row.height > scrollTop);
    this.layTracksOut();
    const now = top && this.layout.rows.find((row) => row.id === top.id);
    if (now && scrollTop > 0) this.scrollTo(scrollTop + now.y - top.y);
  }

  /** Show other findings and warnings; what stands below stays where it is. */
  setBands(bands: readonly Track[], params: Readonly<Record<string, string>>): void {
    this.cache.clear((place) => place >= BAND_PLACES && place < CHARGED_PLACES);
    this.bandParams = params;
    this.bands = bands;
    this.layTracksOut();
  }

  track(id: string): Track | undefined {
    return this.byId.get(id) ?? this.bands.find((band) => band.id === id);
  }

  /** Change parts of the view. */
  update(change: Partial<TimelineView>): void {
    this.view = { ...this.view, ...change };
    if (change.range !== undefined && this.summary) this.viewport.show(change.range ?? this.viewport.bounds);
    if (change.pinned || change.collapsed || change.expanded || change.grouping) this.layTracksOut();
    this.tell(new Set(Object.keys(change) as ViewPart[]));
  }

  setOverlays(change: Partial<Overlays>): void {
    this.overlays = { ...this.overlays, ...change };
    this.redraw();
  }

  /** Show a range of time. */
  show(range: TimeRange): void {
    if (!this.viewport.show(range)) return;
    this.view = { ...this.view, range: this.viewport.isWhole ? null : this.viewport.range };
    this.tell(new Set(["range"]));
  }

  /** Show a range with some room at its sides. */
  fit(range: TimeRange): void {
    const margin = lengthOf(range) * 0.15;
    this.show({ startNs: range.startNs - margin, endNs: range.endNs + margin });
  }

  scrollTo(top: number): void {
    const room = this.layout.height - (this.viewport.height - RULER_HEIGHT - this.layout.pinnedHeight);
    if (this.viewport.scrollTo(top, room)) this.tell(new Set(["scroll"]));
  }

  resize(width: number, height: number): void {
    this.viewport.width = width;
    this.viewport.height = height;
    this.scrollTo(this.viewport.scrollTop);
    this.tell(new Set(["size"]));
  }

  /** Open or close a row. */
  fold(row: Row): void {
    const without = (ids: readonly string[]): string[] => ids.filter((id) => id !== row.id);
    const { collapsed, expanded } = this.view;
    if (row.isOpen) this.update({ collapsed: [...without(collapsed), row.id], expanded: without(expanded) });
    else this.update({ collapsed: without(collapsed), expanded: [...without(expanded), row.id] });
  }

  /** Put a track to the top, or back. */
  pin(row: Row): void {
    if (row.kind !== "track") return;
    const { pinned } = this.view;
    this.update({ pinned: row.isPinned ? pinned.filter((id) => id !== row.id) : [...pinned, row.id] });
  }

  setActive(id: string | null): void {
    if (id === this.activeId) return;
    this.activeId = id;
    this.redraw();
  }

  /** Bring a row into sight. */
  revealRow(row: Row): void {
    if (row.kind === "track" && row.isPinned && this.layout.pinned.includes(row)) return;
    const { scrollTop, height } = this.viewport;
    const room = height - RULER_HEIGHT - this.layout.pinnedHeight;
    if (row.y < scrollTop) this.scrollTo(row.y);
    else if (row.y + row.height > scrollTop + room) this.scrollTo(Math.min(row.y + row.height - room, row.y));
  }

  /** Bring a span into sight, opening what it stands under. */
  reveal(mark: SpanMark): void {
    const track = this.track(mark.track);
    if (track) {
      this.openAbove(track, mark.depth);
      const row = this.layout.rows.find((one) => one.id === track.id);
      if (row) this.revealRow(row);
    }
    const { scale, range } = this.viewport;
    const [left, right] = [scale.toX(mark.startNs), scale.toX(mark.startNs + mark.durationNs)];
    if (left >= 0 && right <= scale.width && right - left >= SEEN_PIXELS) return;
    const middleNs = mark.startNs + mark.durationNs / 2;
    const isFitting = right - left >= SEEN_PIXELS && right - left < scale.width * 0.8;
    if (isFitting) this.show(moved(range, middleNs - (range.startNs + range.endNs) / 2));
    else {
      const length = Math.max(mark.durationNs, 1) / SEEN_SHARE;
      this.show({ startNs: middleNs - length / 2, endNs: middleNs + length / 2 });
    }
  }

  private openAbove(track: Track, depth: number): void {
    const { collapsed, expanded } = this.view;
    const { headings } = regrouped([track], this.view.grouping)[0]!;
    const above = headings.map((_, place) => headingId(headings.slice(0, place + 1)));
    const row = this.layout.rows.find((one) => one.id === track.id);
    const needsDepth = row?.kind === "track" && !row.track.isCharged && depth >= row.fullRows;
    if (row && !needsDepth) return;
    const isShut = needsDepth || track.isIdle;
    const opened = new Set([...above, ...(isShut ? [track.id] : [])]);
    this.update({
      collapsed: collapsed.filter((id) => !opened.has(id)),
      expanded: isShut ? [...expanded, track.id] : expanded,
    });
  }

  private layTracksOut(): void {
    if (!this.summary) return;
    const { pinned, collapsed, expanded } = this.view;
    const folding = { pinned: new Set(pinned), collapsed: new Set(collapsed), expanded: new Set(expanded) };
    this.layout = layOut([...this.bands, ...regrouped(this.summary.tracks, this.view.grouping)], folding);
    this.scrollTo(this.viewport.scrollTop);
    this.tell(new Set(["layout"]));
  }

  private tell(changed: ReadonlySet<ViewPart>): void {
    for (const listener of this.listeners) listener(changed);
    this.redraw();
  }
}

function withIdle(track: Track, isIdle: boolean): Track {
  return { ...track, isIdle, charged: track.charged && { ...track.charged, isIdle } };
}

/** A span's place as the overlays draw it. */
export function markOf(span: SpanRef): SpanMark {
  return { track: span.track, depth: span.depth ?? 0, startNs: span.startNs, durationNs: span.durationNs };
}
