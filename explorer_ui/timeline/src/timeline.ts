/** The timeline: puts the parts together and passes on what the user and the host do. */

import { Core, markOf } from "./core.js";
import { isAbort, requestJson } from "./data/source.js";
import { type ProfileSummary, readSummary, type Track, type TracksAnswer } from "./data/track.js";
import type { FrameInput } from "./draw/frame.js";
import { Renderer } from "./draw/renderer.js";
import { DARK, LIGHT, resolveTheme, type ThemeChoice } from "./draw/theme.js";
import { Comparison } from "./features/comparison.js";
import { Dependencies } from "./features/dependencies.js";
import { Details } from "./features/details.js";
import { Lit } from "./features/lit.js";
import { overviewDemand, overviewLines, overviewTracks } from "./features/overview.js";
import { ReaderTable } from "./features/reader_table.js";
import { Search } from "./features/search.js";
import { sightSum, type SightSum } from "./features/sight.js";
import { activeRow, nextRow, nextSpan, pageTime } from "./features/steps.js";
import { Gestures } from "./input/gestures.js";
import { type KeyAction, Keyboard } from "./input/keyboard.js";
import type { TimelineHandle, TimelineOptions, TimelineStatistics } from "./options.js";
import { Bar } from "./panels/bar.js";
import { adoptStyles } from "./panels/dom.js";
import { PageFrame } from "./panels/frame.js";
import { Headers } from "./panels/headers.js";
import { Help } from "./panels/help.js";
import { Minimap } from "./panels/minimap.js";
import { applyTheme, RULER_HEIGHT, STYLES } from "./panels/stylesheet.js";
import { describe, Tooltip } from "./panels/tooltip.js";
import { demandsFor, visibleTracks } from "./view/demands.js";
import { type Hit, hitTest, type SpanHit } from "./view/hit.js";
import { depthAt, type Row } from "./view/layout.js";
import { isSharp, sharpTiles } from "./view/scene.js";
import { lengthOf, moved, type TimeRange, zoomed } from "./view/time_range.js";
import { countText, durationText, shareText } from "./view/time_text.js";
import { EMPTY_VIEW, type Highlight, type SpanRef, type TimelineView } from "./view/view_state.js";

const REST_MS = 180;
const STATUS_MS = 120;
/** A marker so near to the pointer is the one that is meant. */
const MARKER_PIXELS = 6;
/** How long nothing must happen before the two painters are compared. */
const SETTLE_MS = 1500;

/** Show a timeline in an element, which must have a height. */
export function createTimeline(container: HTMLElement, options: TimelineOptions): TimelineHandle {
  return new Timeline(container, options);
}

class Timeline implements TimelineHandle {
  readonly ready: Promise<ProfileSummary>;
  private readonly core: Core;
  private readonly frame: PageFrame;
  private readonly renderer: Renderer;
  private readonly headers: Headers;
  private readonly minimap: Minimap;
  private readonly tooltip = new Tooltip();
  private readonly help = new Help();
  private readonly reader = new ReaderTable();
  private readonly bar: Bar;
  private readonly search: Search;
  private readonly lit: Lit;
  private readonly details: Details;
  private readonly dependencies: Dependencies;
  private readonly gestures: Gestures;
  private readonly keyboard: Keyboard;
  private mapTracks: readonly Track[] = [];
  private isMapDrawn = false;
  private sums = new Map<string, SightSum>();
  private pointerNs: number | null = null;
  private pendingStep: 1 | -1 | 0 = 0;
  private sharpAt = 0;
  private statusAt = 0;
  private restTimer = 0;
  private settleTimer = 0;

  constructor(
    container: HTMLElement,
    private readonly options: TimelineOptions,
  ) {
    adoptStyles(STYLES);
    const view = { ...EMPTY_VIEW, ...options.view };
    const core = new Core(options.source, view, resolveTheme(options.theme ?? "system"), options.budgetBytes, (error) => this.fail(error));
    this.core = core;
    this.headers = new Headers({
      onFold: (row) => core.fold(row),
      onPin: (row) => core.pin(row),
      onChoose: (row) => core.setActive(row.id),
      note: (row) => this.note(row),
      title: (row) => this.rowTitle(row),
    });
    this.minimap = new Minimap((range) => core.show(range), { startNs: 0, endNs: 1 });
    this.frame = new PageFrame(
      container,
      { overview: this.minimap.root, headers: this.headers.root, tooltip: this.tooltip.root },
      options.chrome ?? true,
      (top) => core.scrollTo(top),
      (width, height) => this.resize(width, height),
    );
    this.frame.root.append(this.help.root, this.reader.root);
    this.renderer = new Renderer(this.frame.stage, options.painter ?? "auto", () => this.input(), () => this.drawn());
    core.attach(this.renderer);
    const fail = (error: unknown): void => this.fail(error);
    this.search = new Search(core, (span) => this.choose(span), fail);
    this.bar = new Bar(this.frame.bar, this.search.root, {
      onZoom: (by) => this.held(0, 0.5 * by),
      onAll: () => core.show(core.viewport.bounds),
      onHelp: () => this.help.toggle(),
      onDark: () => this.setTheme(core.theme.base === "dark" ? LIGHT : DARK),
    });
    this.lit = new Lit(core, (chunk) => this.renderer.release(chunk), fail);
    this.dependencies = new Dependencies(core, (text) => this.reader.say(text), fail);
    this.details = new Details(core, this.frame.panel, {
      onDetails: (selection) => options.onSelect?.(selection),
      onOpenSource: options.onOpenSource,
      showDependencies: () => this.dependencies.toggle(),
    });
    this.gestures = new Gestures(this.frame.stage, this.gestureTarget(), RULER_HEIGHT);
    this.keyboard = new Keyboard(this.frame.root, {
      onHeld: (pan, zoom) => this.held(pan, zoom),
      act: (action) => this.act(action),
    });
    core.onChange((changed) => this.changed(changed));
    this.setTheme(options.theme ?? "system");
    this.ready = this.open();
    this.ready.catch(() => undefined);
  }

  get view(): TimelineView {
    return this.core.view;
  }

  setView(view: Partial<TimelineView>): void {
    const before = JSON.stringify(this.view);
    this.core.update(view);
    // Where the user then goes back to what the host was told last, that is news for the host.
    if (JSON.stringify(this.view) !== before) this.told = "";
  }

  setSelection(selection: { span?: SpanRef | null; range?: TimeRange | null }): void {
    const { span, range } = selection;
    if (span !== undefined) this.core.update({ span });
    if (span) this.core.reveal(markOf(span));
    if (range !== undefined) this.core.update({ selection: range });
    if (range) this.core.fit(range);
  }

  highlight(highlight: Highlight | null): void {
    this.core.update({ highlight });
  }

  searchFor(text: string): void {
    this.core.update({ search: text });
  }

  setTheme(choice: ThemeChoice): void {
    this.core.theme = resolveTheme(choice);
    applyTheme(this.frame.root, this.core.theme);
    this.renderer.setTheme(this.core.theme);
    this.isMapDrawn = false;
    this.core.redraw();
  }

  statistics(): TimelineStatistics {
    const { kind, frames, frameMs, costs } = this.renderer;
    const { cache } = this.core;
    const isSharpNow = this.sharpAt > 0;
    return {
      painter: kind,
      painterCosts: costs,
      frames,
      frameMs: [...frameMs],
      cacheBytes: cache.bytes,
      chunks: cache.size,
      isSharp: isSharpNow,
      sharpAt: this.sharpAt,
    };
  }

  destroy(): void {
    this.core.abort.abort();
    clearTimeout(this.restTimer);
    clearTimeout(this.settleTimer);
    this.details.destroy();
    this.lit.destroy();
    this.core.loader.close();
    this.gestures.destroy();
    this.keyboard.destroy();
    this.core.cache.clear();
    this.renderer.destroy();
    this.frame.destroy();
  }

  private async open(): Promise<ProfileSummary> {
    this.frame.say("Reading the profile…");
    try {
      const answer = await requestJson<TracksAnswer>(this.core.source, "tracks", {}, this.core.abort.signal);
      const summary = await this.withBase(readSummary(answer));
      this.headers.setTitle(summary.isComplete ? summary.name : `${summary.name} (incomplete)`);
      this.frame.say(summary.tracks.length > 0 ? null : "This profile has no spans and no counters to show.");
      this.mapTracks = overviewTracks(summary.tracks);
      this.core.open(summary);
      this.told = JSON.stringify(this.view);
      this.details.start();
      this.search.start();
      this.lit.light(this.view.highlight);
      this.showLit();
      return summary;
    } catch (error) {
      if (!isAbort(error)) this.fail(error);
      throw error;
    }
  }

  /** The profile with the tracks of the one that it is compared with. */
  private async withBase(summary: ProfileSummary): Promise<ProfileSummary> {
    const { compare } = this.options;
    if (!compare) return summary;
    const { core } = this;
    const answer = await requestJson<TracksAnswer>(compare, "tracks", {}, core.abort.signal);
    const comparison = new Comparison(compare, summary, readSummary(answer), core.names);
    core.comparison = comparison;
    comparison.load(core.source, core.abort.signal).then(
      () => {
        core.cache.clear(); // what was drawn has the colours of names
        core.redraw();
      },
      (error: unknown) => {
        if (!isAbort(error)) this.fail(error);
      },
    );
    return comparison.both();
  }

  private input(): FrameInput | null {
    const { core } = this;
    if (!core.summary || core.viewport.width < 2) return null;
    core.cache.tick();
    const { scale, height, scrollTop } = core.viewport;
    const chosen = core.view.span ? markOf(core.view.span) : null;
    return {
      scale,
      height,
      scrollTop,
      layout: core.layout,
      theme: core.theme,
      view: core.view,
      cache: core.cache,
      names: core.names,
      overlays: { ...core.overlays, chosen },
      isCompared: core.comparison?.isLoaded ?? false,
      lit: this.lit.placed,
    };
  }

  /** After each frame: what stands beside the canvas follows, and what is missing is fetched. */
  private drawn(): void {
    const { core } = this;
    if (!core.summary) return;
    const { viewport, layout } = core;
    this.headers.show(layout, viewport.scrollTop, viewport.height - RULER_HEIGHT - layout.pinnedHeight, core.activeId);
    this.frame.setScroll(viewport.scrollTop, layout.height + layout.pinnedHeight);
    this.minimap.show(viewport.range);
    const map = overviewDemand(core, this.mapTracks, this.minimap.columns);
    core.loader.want([...demandsFor(layout, viewport), map]);
    this.lit.want();
    const isSharpNow = isSharp(core.cache, visibleTracks(layout, viewport), sharpTiles(viewport.scale), viewport.bounds);
    if (!isSharpNow) this.sharpAt = 0;
    else if (this.sharpAt === 0) {
      this.sharpAt = performance.now();
      this.rest();
    }
    const now = performance.now();
    if (now - this.statusAt > STATUS_MS) this.showStatus();
    if (!this.isMapDrawn) this.drawMap();
    core.cache.trim(() => false);
  }

  /** Every change of a text makes the page lay itself out, so not in every frame. */
  private showStatus(): void {
    this.statusAt = performance.now();
    const { viewport, loader } = this.core;
    const loading = loader.isLoading || this.lit.isLoading ? " · loading…" : "";
    this.bar.setStatus(`${durationText(lengthOf(viewport.range))} in sight${loading}`);
  }

  private drawMap(): void {
    const { core } = this;
    const lines = overviewLines(core, this.mapTracks, this.minimap.columns);
    const isComplete = isSharp(core.cache, this.mapTracks, overviewDemand(core, this.mapTracks, this.minimap.columns).tiles, core.viewport.bounds);
    if (!lines || !isComplete) return;
    this.isMapDrawn = true;
    const marks = [...this.search.times, ...core.view.markers.map((marker) => marker.timeNs)];
    this.minimap.draw(core.viewport.bounds, lines, marks, core.theme);
  }

  private changed(changed: ReadonlySet<string>): void {
    if (changed.has("range")) {
      this.tooltip.hide();
      this.sharpAt = 0;
    }
    if (changed.has("highlight")) this.showLit();
    if (changed.has("search") || changed.has("markers") || changed.has("size")) this.isMapDrawn = false;
    this.rest();
  }

  private showLit(): void {
    const { highlight } = this.view;
    this.bar.setLit(highlight && (highlight.label ?? highlight.value), () => this.core.update({ highlight: null }));
  }

  private resize(width: number, height: number): void {
    if (width < 2 || height < 2) return;
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.renderer.resize(width, height, ratio);
    this.minimap.resize(width, ratio);
    this.core.resize(width, height);
  }

  /** When nothing has moved for a moment: sums, the table for screen readers, and word to the host. */
  private rest(): void {
    clearTimeout(this.restTimer);
    clearTimeout(this.settleTimer);
    this.restTimer = window.setTimeout(() => {
      const { core } = this;
      this.sums = new Map();
      for (const drawn of this.renderer.rows) {
        const sum = sightSum(drawn, core.viewport.range);
        if (sum) this.sums.set(drawn.row.id, sum);
      }
      this.headers.refreshNotes();
      this.showStatus();
      this.reader.show(this.renderer.rows, core.viewport.range, core.names);
      if (this.pendingStep !== 0 && this.sharpAt > 0) this.step(this.pendingStep, true);
      this.tellHost();
      this.settleTimer = window.setTimeout(() => this.sharpAt > 0 && this.renderer.settle(), SETTLE_MS);
    }, REST_MS);
  }

  private told = "";

  private tellHost(): void {
    const text = JSON.stringify(this.view);
    if (text === this.told || !this.core.summary) return;
    this.told = text;
    this.options.onViewChange?.(this.view);
  }

  private held(pan: number, zoom: number): void {
    const { range, scale } = this.core.viewport;
    let next = range;
    if (pan !== 0) next = moved(next, pan * lengthOf(range));
    if (zoom !== 0) next = zoomed(next, Math.exp(zoom), this.pointerNs ?? scale.toNs(scale.width / 2));
    this.core.show(next);
  }

  private readonly actions: Readonly<Record<KeyAction, () => void>> = {
    "zoom-in": () => this.held(0, -0.5),
    "zoom-out": () => this.held(0, 0.5),
    "fit-all": () => this.core.show(this.core.viewport.bounds),
    "fit-selection": () => this.fitSelection(),
    "row-up": () => this.stepRow(-1),
    "row-down": () => this.stepRow(1),
    "span-previous": () => this.step(-1, false),
    "span-next": () => this.step(1, false),
    "page-up": () => this.core.scrollTo(this.core.viewport.scrollTop - this.core.viewport.height * 0.8),
    "page-down": () => this.core.scrollTo(this.core.viewport.scrollTop + this.core.viewport.height * 0.8),
    fold: () => this.withActive((row) => this.core.fold(row)),
    pin: () => this.withActive((row) => this.core.pin(row)),
    mark: () => this.mark(),
    search: () => this.search.focus(),
    "hit-next": () => this.search.step(1),
    "hit-previous": () => this.search.step(-1),
    highlight: () => void this.lightChosen(),
    dependencies: () => this.dependencies.toggle(),
    clear: () => this.clear(),
    help: () => this.help.toggle(),
  };

  private act(action: KeyAction): void {
    this.actions[action]();
  }

  private clear(): void {
    this.gestures.reset();
    this.core.update({ span: null, selection: null, highlight: null });
  }

  private fitSelection(): void {
    const { selection, span } = this.view;
    if (span) this.core.fit({ startNs: span.startNs, endNs: span.startNs + Math.max(span.durationNs, 1) });
    else if (selection) this.core.fit(selection);
  }

  private withActive(act: (row: Row) => void): void {
    const row = activeRow(this.core);
    if (row) act(row);
  }

  private stepRow(by: 1 | -1): void {
    const row = nextRow(this.core, by);
    if (!row) return;
    this.core.setActive(row.id);
    this.core.revealRow(row);
    this.reader.say(row.kind === "heading" ? `${row.name}, ${row.isOpen ? "open" : "closed"}` : `${row.track.name}. ${this.note(row)}`);
  }

  /** Choose the next span of the active track; beyond the edge of the view, move on and try once more. */
  private step(by: 1 | -1, isRetry: boolean): void {
    this.pendingStep = 0;
    if (!this.core.activeId) this.stepRow(1);
    const drawn = this.renderer.rows.find((one) => one.row.id === this.core.activeId);
    const hit = drawn && nextSpan(this.core, drawn, by);
    if (hit) {
      const span = refOf(hit);
      this.choose(span);
      this.core.reveal(markOf(span));
    } else if (!isRetry && drawn) {
      this.pendingStep = by;
      pageTime(this.core, by);
    }
  }

  /** Put a marker at the pointer, or take away the one that is there. */
  private mark(): void {
    const { scale, width } = this.core.viewport;
    const timeNs = Math.round(this.pointerNs ?? this.view.span?.startNs ?? scale.toNs(width / 2));
    const left = this.view.markers.filter((marker) => Math.abs(marker.timeNs - timeNs) > MARKER_PIXELS * scale.nsPerPixel);
    const isNew = left.length === this.view.markers.length;
    this.core.update({ markers: isNew ? [...left, { timeNs, text: "" }] : left });
  }

  /** Light up what the chosen span belongs to most closely. */
  private async lightChosen(): Promise<void> {
    const { span, highlight } = this.view;
    const track = span && this.core.track(span.track);
    if (highlight || !span || !track) {
      this.core.update({ highlight: null });
      return;
    }
    const params = { track: String(track.listed), row: String(span.row), depth: String(span.depth ?? 0) };
    const { source } = this.core.originOf(track);
    const { signal } = this.core.abort;
    const answer = await requestJson<{ belongs: (Highlight & { name: string })[] }>(source, "details", params, signal);
    const first = answer.belongs[0];
    this.core.update({ highlight: first ? { by: first.by, value: first.value, label: first.name } : { by: "name", value: span.name } });
  }

  /** What stands at a point of the plot. */
  private hitAt(x: number, y: number): Hit | null {
    if (y < RULER_HEIGHT) return null;
    const drawn = this.renderer.rows.find((one) => y >= one.top && y < one.top + one.row.height);
    const depth = drawn && depthAt(drawn.row, y - drawn.top);
    if (!drawn || depth === undefined || depth === null) return null;
    return hitTest(drawn.placed, drawn.row, depth, x, this.core.viewport.scale, this.core.names);
  }

  private hover(x: number | null, y: number): void {
    this.pointerNs = x === null ? null : this.core.viewport.scale.toNs(x);
    const hit = x === null ? null : this.hitAt(x, y);
    if (hit && x !== null) {
      const { body, stage } = this.frame;
      this.tooltip.show([...describe(hit), ...this.change(hit)], x + stage.offsetLeft, y, body.clientWidth, body.clientHeight);
    } else this.tooltip.hide();
    const hovered = hit?.kind === "span" ? boxOf(hit) : null;
    const { hovered: before } = this.core.overlays;
    if (hovered?.startNs !== before?.startNs || hovered?.track !== before?.track || hovered?.depth !== before?.depth) {
      this.core.setOverlays({ hovered });
    }
  }

  /** How the mean of a span's name differs from the other profile's. */
  private change(hit: Hit): string[] {
    const ratio = hit.kind === "span" ? this.core.comparison?.ratio(hit.row.track, hit.name) : undefined;
    if (ratio === undefined) return [];
    const percent = Math.abs(ratio - 1) * 100;
    return [percent < 2 ? "as long as in the other profile" : `${percent.toFixed(0)} % ${ratio > 1 ? "slower" : "faster"} on average`];
  }

  private click(x: number, y: number): void {
    this.frame.body.focus({ preventScroll: true });
    const hit = this.hitAt(x, y);
    if (hit) this.core.setActive(hit.row.id);
    this.choose(hit?.kind === "span" ? refOf(hit) : null);
    if (hit) this.reader.say(describe(hit).join(", "));
  }

  private choose(span: SpanRef | null): void {
    this.core.update({ span });
    this.options.onSelect?.({ span, range: this.view.selection, details: null, source: null });
  }

  private gestureTarget(): ConstructorParameters<typeof Gestures>[1] {
    const { core } = this;
    return {
      scale: () => core.viewport.scale,
      setRange: (range) => core.show(range),
      scrollBy: (pixels) => core.scrollTo(core.viewport.scrollTop + pixels),
      onHover: (x, y) => this.hover(x, y),
      onClick: (x, y) => this.click(x, y),
      onDoubleClick: (x, y) => {
        const hit = this.hitAt(x, y);
        if (hit?.kind === "span") core.fit({ startNs: hit.startNs, endNs: hit.startNs + Math.max(hit.durationNs, 1) });
      },
      onRange: (range, isDone) => {
        core.setOverlays({ dragged: isDone ? null : range });
        if (isDone) {
          core.update({ selection: range });
          this.options.onSelect?.({ span: this.view.span, range, details: null, source: null });
        } else this.details.drag(range);
      },
      onBox: (box, isDone) => {
        this.frame.setBox(isDone ? null : box);
        if (!box || !isDone) return;
        const { scale } = core.viewport;
        const top = box.top - RULER_HEIGHT - core.layout.pinnedHeight;
        if (top > 0) core.scrollTo(core.viewport.scrollTop + top - 8);
        core.show({ startNs: scale.toNs(box.left), endNs: scale.toNs(box.right) });
      },
    };
  }

  /** What stands beside a row's name: how busy it is in sight. */
  private note(row: Row): string {
    const sum = this.sums.get(row.id);
    return sum ? shareText(sum.busyShare) : "";
  }

  private rowTitle(row: Row): string {
    if (row.kind === "heading") return row.name;
    const { track } = row;
    const sum = this.sums.get(row.id);
    const sight = sum ? `\n${countText(sum.count)} spans begin in sight, ${shareText(sum.busyShare)} busy` : "";
    const depths = track.depths > 1 ? `, ${track.depths} deep` : "";
    return `${track.name}\n${countText(track.spans)} ${track.isCounter ? "samples" : "spans"}${depths}${sight}`;
  }

  private fail(error: unknown): void {
    const known = error instanceof Error ? error : new Error(String(error));
    this.frame.say(known.message, {
      name: "Try again",
      run: () => {
        this.frame.say(null);
        if (this.core.summary) this.core.loader.retry();
        else this.open().catch(() => undefined);
      },
    });
    this.options.onError?.(known);
  }
}

function refOf(hit: SpanHit): SpanRef {
  const { row, tableRow, depth, startNs, durationNs, name } = hit;
  return { track: row.track.id, row: tableRow, depth, startNs, durationNs, name };
}

/** The box of what the pointer rests on: of a bucket, the bucket. */
function boxOf(hit: SpanHit): { track: string; depth: number; startNs: number; durationNs: number } {
  const durationNs = hit.isBucket ? hit.bucketNs : hit.durationNs;
  return { track: hit.row.track.id, depth: hit.depth, startNs: hit.startNs, durationNs };
}
