/** The timeline: puts the parts together, keeps the state of the view, and draws when something changed. */

import { ChunkCache } from "./data/chunk_cache.js";
import { NameTable } from "./data/names.js";
import { isAbort, requestJson } from "./data/source.js";
import { TileLoader } from "./data/tile_loader.js";
import { type ProfileSummary, readSummary, type TracksAnswer } from "./data/track.js";
import type { FrameInput } from "./draw/frame.js";
import { NO_OVERLAYS, type Overlays } from "./draw/overlays.js";
import { Renderer } from "./draw/renderer.js";
import { resolveTheme, type Theme, type ThemeChoice } from "./draw/theme.js";
import { Gestures } from "./input/gestures.js";
import { type KeyAction, Keyboard } from "./input/keyboard.js";
import type { TimelineHandle, TimelineOptions, TimelineStatistics } from "./options.js";
import { adoptStyles } from "./panels/dom.js";
import { PageFrame } from "./panels/frame.js";
import { Headers } from "./panels/headers.js";
import { Minimap } from "./panels/minimap.js";
import { applyTheme, RULER_HEIGHT, STYLES } from "./panels/stylesheet.js";
import { Tooltip } from "./panels/tooltip.js";
import { demandsFor, visibleTracks } from "./view/demands.js";
import { type Hit, hitTest, type SpanHit } from "./view/hit.js";
import { depthAt, type Layout, layOut, type Row } from "./view/layout.js";
import { isSharp, sharpTiles } from "./view/scene.js";
import { lengthOf, moved, type TimeRange, zoomed } from "./view/time_range.js";
import { EMPTY_VIEW, type Highlight, type SpanRef, type TimelineView } from "./view/view_state.js";
import { Viewport } from "./view/viewport.js";

const REST_MS = 180;
const EMPTY_LAYOUT: Layout = { pinned: [], pinnedHeight: 0, rows: [], height: 0 };

/** Show a timeline in an element, which must have a height. */
export function createTimeline(container: HTMLElement, options: TimelineOptions): TimelineHandle {
  return new Timeline(container, options);
}

class Timeline implements TimelineHandle {
  readonly ready: Promise<ProfileSummary>;
  view: TimelineView;
  private theme: Theme;
  private summary: ProfileSummary | null = null;
  private layout: Layout = EMPTY_LAYOUT;
  private overlays: Overlays = NO_OVERLAYS;
  private sharpAt = 0;
  private restTimer = 0;
  private readonly abort = new AbortController();
  private readonly names = new NameTable();
  private readonly viewport = new Viewport();
  private readonly cache: ChunkCache;
  private readonly loader: TileLoader;
  private readonly tooltip = new Tooltip();
  private readonly headers: Headers;
  private readonly minimap: Minimap;
  private readonly frame: PageFrame;
  private readonly renderer: Renderer;
  private readonly gestures: Gestures;
  private readonly keyboard: Keyboard;

  constructor(
    container: HTMLElement,
    private readonly options: TimelineOptions,
  ) {
    adoptStyles(STYLES);
    this.view = { ...EMPTY_VIEW, ...options.view };
    this.theme = resolveTheme(options.theme ?? "system");
    this.cache = new ChunkCache(options.budgetBytes, (chunk) => this.renderer.release(chunk));
    this.loader = new TileLoader(options.source, this.cache, this.names, () => this.changed(), (error) => this.fail(error));
    this.headers = new Headers({
      onFold: (row) => this.fold(row),
      onPin: (row) => this.pin(row),
      onChoose: () => undefined,
      note: () => "",
      title: (row) => (row.kind === "heading" ? row.name : row.track.id),
    });
    this.minimap = new Minimap((range) => this.show(range), { startNs: 0, endNs: 1 });
    const parts = { overview: this.minimap.root, headers: this.headers.root, tooltip: this.tooltip.root };
    this.frame = new PageFrame(
      container,
      parts,
      options.chrome ?? true,
      (top) => this.scrollTo(top),
      (width, height) => this.resize(width, height),
    );
    this.renderer = new Renderer(this.frame.stage, options.painter ?? "auto", () => this.input(), () => this.drawn());
    this.gestures = new Gestures(this.frame.stage, this.gestureTarget(), RULER_HEIGHT);
    this.keyboard = new Keyboard(this.frame.body, {
      onHeld: (pan, zoom) => this.held(pan, zoom),
      act: (action) => this.act(action),
    });
    this.setTheme(options.theme ?? "system");
    this.ready = this.open();
    this.ready.catch(() => undefined);
  }

  setView(view: Partial<TimelineView>): void {
    this.view = { ...this.view, ...view };
    if (view.pinned || view.collapsed || view.expanded) this.layTracksOut();
    if (view.range !== undefined && this.summary) {
      if (view.range) this.viewport.show(view.range);
      else this.viewport.showAll();
    }
    this.changed();
  }

  setSelection(selection: { span?: SpanRef | null; range?: TimeRange | null }): void {
    this.view = {
      ...this.view,
      ...(selection.span === undefined ? {} : { span: selection.span }),
      ...(selection.range === undefined ? {} : { selection: selection.range }),
    };
    this.changed();
    this.rest();
  }

  highlight(highlight: Highlight | null): void {
    this.view = { ...this.view, highlight };
    this.changed();
    this.rest();
  }

  search(text: string): void {
    this.view = { ...this.view, search: text };
    this.rest();
  }

  setTheme(choice: ThemeChoice): void {
    this.theme = resolveTheme(choice);
    applyTheme(this.frame.root, this.theme);
    this.renderer.setTheme(this.theme);
    this.changed();
  }

  statistics(): TimelineStatistics {
    const { kind, frames, frameMs } = this.renderer;
    return {
      painter: kind,
      frames,
      frameMs: [...frameMs],
      cacheBytes: this.cache.bytes,
      chunks: this.cache.size,
      isSharp: this.sharpAt > 0,
      sharpAt: this.sharpAt,
    };
  }

  destroy(): void {
    this.abort.abort();
    clearTimeout(this.restTimer);
    this.loader.close();
    this.gestures.destroy();
    this.keyboard.destroy();
    this.cache.clear();
    this.renderer.destroy();
    this.frame.destroy();
  }

  private async open(): Promise<ProfileSummary> {
    this.frame.say("Reading the profile…");
    try {
      const answer = await requestJson<TracksAnswer>(this.options.source, "tracks", {}, this.abort.signal);
      const summary = readSummary(answer);
      this.summary = summary;
      this.viewport.bounds = { startNs: summary.startNs, endNs: summary.endNs };
      this.viewport.show(this.view.range ?? this.viewport.bounds);
      this.headers.setTitle(summary.name);
      this.frame.say(summary.tracks.length > 0 ? null : "This profile has no spans and no counters to show.");
      this.layTracksOut();
      return summary;
    } catch (error) {
      if (!isAbort(error)) this.fail(error);
      throw error;
    }
  }

  private layTracksOut(): void {
    if (!this.summary) return;
    const { pinned, collapsed, expanded } = this.view;
    const folding = { pinned: new Set(pinned), collapsed: new Set(collapsed), expanded: new Set(expanded) };
    this.layout = layOut(this.summary.tracks, folding);
    this.scrollTo(this.viewport.scrollTop);
    this.changed();
  }

  private input(): FrameInput | null {
    if (!this.summary || this.viewport.width < 2) return null;
    this.cache.tick();
    const { scale, height, scrollTop } = this.viewport;
    return {
      scale,
      height,
      scrollTop,
      layout: this.layout,
      theme: this.theme,
      view: this.view,
      cache: this.cache,
      names: this.names,
      overlays: this.overlays,
      lit: null,
    };
  }

  private drawn(): void {
    if (!this.summary) return;
    const { viewport, layout } = this;
    this.headers.show(layout, viewport.scrollTop, viewport.height, null);
    this.minimap.show(viewport.range);
    this.loader.want(demandsFor(layout, viewport));
    const sharp = isSharp(this.cache, visibleTracks(layout, viewport), sharpTiles(viewport.scale));
    if (!sharp) this.sharpAt = 0;
    else if (this.sharpAt === 0) this.sharpAt = performance.now();
    this.cache.trim(() => false);
  }

  /** Something that is drawn is different now. */
  private changed(): void {
    this.renderer.invalidate();
  }

  private show(range: TimeRange): void {
    if (!this.viewport.show(range)) return;
    this.tooltip.hide();
    this.changed();
    this.rest();
  }

  private scrollTo(top: number): void {
    const room = this.layout.height - (this.viewport.height - RULER_HEIGHT - this.layout.pinnedHeight);
    const isNew = this.viewport.scrollTo(top, room);
    this.frame.setScroll(this.viewport.scrollTop, this.layout.height + this.layout.pinnedHeight);
    if (isNew) this.changed();
  }

  private resize(width: number, height: number): void {
    if (width < 2 || height < 2) return;
    this.viewport.width = width;
    this.viewport.height = height;
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.renderer.resize(width, height, ratio);
    this.minimap.resize(width, ratio);
    this.scrollTo(this.viewport.scrollTop);
    this.changed();
  }

  /** Tell the host of the view once it has come to rest. */
  private rest(): void {
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => {
      const range = this.viewport.isWhole ? null : this.viewport.range;
      this.view = { ...this.view, range };
      this.options.onViewChange?.(this.view);
    }, REST_MS);
  }

  private held(pan: number, zoom: number): void {
    const { range, scale } = this.viewport;
    let next = range;
    if (pan !== 0) next = moved(next, pan * lengthOf(range));
    if (zoom !== 0) next = zoomed(next, Math.exp(zoom), this.pointerNs ?? scale.toNs(scale.width / 2));
    this.show(next);
  }

  private pointerNs: number | null = null;

  private act(action: KeyAction): void {
    if (action === "zoom-in") this.held(0, -0.5);
    else if (action === "zoom-out") this.held(0, 0.5);
    else if (action === "fit-all") this.show(this.viewport.bounds);
    else if (action === "clear") this.setSelection({ span: null, range: null });
  }

  private fold(row: Row): void {
    const without = (ids: readonly string[]): string[] => ids.filter((id) => id !== row.id);
    const { collapsed, expanded } = this.view;
    this.setView(
      row.isOpen
        ? { collapsed: [...without(collapsed), row.id], expanded: without(expanded) }
        : { collapsed: without(collapsed), expanded: [...without(expanded), row.id] },
    );
    this.rest();
  }

  private pin(row: Row): void {
    const { pinned } = this.view;
    this.setView({ pinned: pinned.includes(row.id) ? pinned.filter((id) => id !== row.id) : [...pinned, row.id] });
    this.rest();
  }

  /** What stands at a point of the plot. */
  private hitAt(x: number, y: number): Hit | null {
    const drawn = this.renderer.rows.find((one) => y >= one.top && y < one.top + one.row.height);
    if (!drawn || y < RULER_HEIGHT) return null;
    const depth = depthAt(drawn.row, y - drawn.top);
    return depth === null ? null : hitTest(drawn.placed, drawn.row, depth, x, this.viewport.scale, this.names);
  }

  private hover(x: number | null, y: number): void {
    this.pointerNs = x === null ? null : this.viewport.scale.toNs(x);
    const hit = x === null ? null : this.hitAt(x, y);
    if (hit && x !== null) {
      const { offsetLeft } = this.frame.stage;
      this.tooltip.show(hit, x + offsetLeft, y, this.frame.body.clientWidth, this.frame.body.clientHeight);
    } else this.tooltip.hide();
    const hovered = hit?.kind === "span" ? markOf(hit) : null;
    if (hovered !== this.overlays.hovered) {
      this.overlays = { ...this.overlays, hovered };
      this.changed();
    }
  }

  private click(x: number, y: number): void {
    this.frame.body.focus({ preventScroll: true });
    const hit = this.hitAt(x, y);
    const span = hit?.kind === "span" ? refOf(hit) : null;
    this.overlays = { ...this.overlays, chosen: hit?.kind === "span" ? markOf(hit) : null };
    this.setSelection({ span });
    this.options.onSelect?.({ span, range: this.view.selection, details: null, source: null });
  }

  private gestureTarget(): ConstructorParameters<typeof Gestures>[1] {
    return {
      scale: () => this.viewport.scale,
      setRange: (range) => this.show(range),
      scrollBy: (pixels) => this.scrollTo(this.viewport.scrollTop + pixels),
      onHover: (x, y) => this.hover(x, y),
      onClick: (x, y) => this.click(x, y),
      onDoubleClick: (x, y) => {
        const hit = this.hitAt(x, y);
        if (hit?.kind === "span") this.fit({ startNs: hit.startNs, endNs: hit.startNs + Math.max(hit.durationNs, 1) });
      },
      onRange: (range, isDone) => {
        this.overlays = { ...this.overlays, dragged: isDone ? null : range };
        if (isDone) this.setSelection({ range });
        this.changed();
      },
      onBox: (box, isDone) => {
        const { scale } = this.viewport;
        if (box && isDone) this.show({ startNs: scale.toNs(box.left), endNs: scale.toNs(box.right) });
      },
    };
  }

  private fit(range: TimeRange): void {
    const margin = lengthOf(range) * 0.15;
    this.show({ startNs: range.startNs - margin, endNs: range.endNs + margin });
  }

  private fail(error: unknown): void {
    const known = error instanceof Error ? error : new Error(String(error));
    this.frame.say(known.message, {
      name: "Try again",
      run: () => {
        this.frame.say(null);
        if (this.summary) this.loader.retry();
        else this.open().catch(() => undefined);
      },
    });
    this.options.onError?.(known);
  }
}

function refOf(hit: SpanHit): SpanRef {
  return { track: hit.row.track.id, row: hit.tableRow, startNs: hit.startNs, durationNs: hit.durationNs, name: hit.name };
}

function markOf(hit: SpanHit): { track: string; depth: number; startNs: number; durationNs: number } {
  const durationNs = hit.isBucket ? hit.bucketNs : hit.durationNs;
  return { track: hit.row.track.id, depth: hit.depth, startNs: hit.startNs, durationNs };
}
