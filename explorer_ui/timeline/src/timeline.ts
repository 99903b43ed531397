/** The timeline: puts the parts together and passes on what the user and the host do. */

import { Core, markOf, type ViewPart } from "./core.js";
import { isAbort, requestJson } from "./data/source.js";
import { isEmpty, isIdleIn, type ProfileSummary, type RangeUse, readSummary, type TracksAnswer } from "./data/track.js";
import type { FrameInput } from "./draw/frame.js";
import type { GroupedBy, NamedEngines } from "./draw/engine_colours.js";
import { Renderer } from "./draw/renderer.js";
import { DARK, LIGHT, resolveTheme, type ThemeChoice } from "./draw/theme.js";
import { Bands } from "./features/bands.js";
import { Choice } from "./features/choice.js";
import { type Base, Comparison } from "./features/comparison.js";
import { Dependencies } from "./features/dependencies.js";
import { Details } from "./features/details.js";
import { Lit } from "./features/lit.js";
import { Markers } from "./features/markers.js";
import { Measure } from "./features/measure.js";
import { OverviewMap } from "./features/overview_map.js";
import { Pointing } from "./features/pointing.js";
import { ReaderTable } from "./features/reader_table.js";
import { SavedMarkersBox } from "./features/saved_markers.js";
import { Search } from "./features/search.js";
import { SightSums } from "./features/sight_sums.js";
import { Walking } from "./features/walking.js";
import { Gestures } from "./input/gestures.js";
import { type KeyAction, Keyboard } from "./input/keyboard.js";
import type { ComparedProfile, TimelineHandle, TimelineOptions, TimelineStatistics } from "./options.js";
import { Bar } from "./panels/bar.js";
import { adoptStyles } from "./panels/dom.js";
import { PageFrame } from "./panels/frame.js";
import { Headers } from "./panels/headers.js";
import { Help } from "./panels/help.js";
import { Legend } from "./panels/legend.js";
import { Minimap } from "./panels/minimap.js";
import { applyTheme, RULER_HEIGHT, STYLES } from "./panels/stylesheet.js";
import { Tooltip } from "./panels/tooltip.js";
import { demandsFor, visibleTracks } from "./view/demands.js";
import { isSharp, sharpTiles } from "./view/scene.js";
import { lengthOf, moved, type TimeRange, zoomed } from "./view/time_range.js";
import { durationText } from "./view/time_text.js";
import { EMPTY_VIEW, type Highlight, type SpanRef, type TimelineView } from "./view/view_state.js";

/** Parts of the view that need data which may not be there yet. */
const REDRAWN: readonly ViewPart[] = ["range", "scroll", "layout", "size", "highlight"];
const REST_MS = 180;
const STATUS_MS = 120;
/** How long nothing must happen before a GPU is looked for. */
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
  private readonly choice: Choice;
  private readonly sums: SightSums;
  private readonly map: OverviewMap;
  private readonly pointing: Pointing;
  private readonly walking: Walking;
  private readonly markers: Markers;
  private readonly savedMarkers: SavedMarkersBox;
  private readonly bar: Bar;
  private readonly legend: Legend;
  private readonly search: Search;
  private readonly lit: Lit;
  private readonly bands: Bands;
  private readonly measure: Measure;
  private readonly details: Details;
  private readonly dependencies: Dependencies;
  private readonly gestures: Gestures;
  private readonly keyboard: Keyboard;
  private foldedFor: Record<string, string> = {};
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
    this.choice = new Choice(core, options.onSelect);
    this.sums = new SightSums(core);
    this.headers = new Headers({
      onFold: (row) => core.fold(row),
      onPin: (row) => core.pin(row),
      onChoose: (row) => core.setActive(row.id),
      note: (row) => this.sums.note(row),
      title: (row) => this.sums.title(row),
    });
    this.minimap = new Minimap((range) => core.show(range), { startNs: 0, endNs: 1 });
    this.map = new OverviewMap(core, this.minimap);
    this.frame = new PageFrame(
      container,
      { overview: this.minimap.root, headers: this.headers.root, tooltip: this.tooltip.root },
      options.chrome ?? true,
      (top) => core.scrollTo(top),
      (width, height) => this.resize(width, height),
    );
    this.frame.root.append(this.help.root, this.reader.root);
    const { body, stage } = this.frame;
    this.markers = new Markers(core, () => stage.offsetLeft, () => body.focus({ preventScroll: true }));
    body.append(this.markers.field);
    this.savedMarkers = new SavedMarkersBox(core, options.markerStore ?? null);
    this.frame.root.append(this.savedMarkers.list.root);
    this.renderer = new Renderer(this.frame.stage, options.painter ?? "auto", () => this.input(), () => this.drawn());
    core.attach(this.renderer);
    const fail = (error: unknown): void => this.fail(error);
    this.search = new Search(core, (span) => this.choice.chooseSpan(span), fail);
    this.legend = new Legend({
      groups: (by) => this.groupNames(by),
      onColourBy: (by) => core.recolour({ by }),
      onDimmed: (slots) => this.renderer.dim(slots),
    });
    this.legend.root.hidden = this.isComparing; // its colours tell what is slower and faster
    this.bar = new Bar(this.frame.bar, this.search.root, {
      onZoom: (by) => this.held(0, 0.5 * by),
      onAll: () => core.show(core.viewport.bounds),
      onHelp: () => this.help.toggle(),
      onMarkers: () => this.savedMarkers.toggle(),
      onGroup: (grouping) => core.update({ grouping }),
      legend: this.legend.root,
      ...((options.theme ?? "system") === "system" && {
        onDark: () => this.setTheme(core.theme.base === "dark" ? LIGHT : DARK),
      }),
    });
    this.bands = new Bands(core);
    this.bands.setScope(options.scope ?? null);
    this.measure = new Measure(core);
    this.lit = new Lit(core, (chunk) => this.renderer.release(chunk), fail);
    this.dependencies = new Dependencies(core, (text) => this.reader.say(text), fail);
    this.details = new Details(core, this.frame.panel, {
      onDetails: (selection) => options.onSelect?.(selection),
      onOpenSource: options.onOpenSource,
      showDependencies: () => this.dependencies.toggle(),
    });
    this.walking = new Walking(core, this.renderer, this.choice, this.sums, this.reader);
    this.pointing = new Pointing(core, this.renderer, this.frame, this.tooltip, this.reader, this.choice, this.details, this.measure);
    this.gestures = new Gestures(this.frame.stage, this.pointing.target(), RULER_HEIGHT);
    this.keyboard = new Keyboard(this.frame.root, {
      onHeld: (pan, zoom) => this.held(pan, zoom),
      act: (action) => this.actions[action](),
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
    const { range } = this.view;
    this.core.update(view);
    if (view.range !== undefined && JSON.stringify(view.range) !== JSON.stringify(range)) void this.foldIdle();
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
    applyTheme(this.frame.apart, this.core.theme);
    this.renderer.setTheme(this.core.theme);
    this.legend.setTheme(this.core.theme);
    this.map.redraw();
    this.core.redraw();
  }

  setScope(scope: TimeRange | null): void {
    this.bands.setScope(scope);
  }

  detailsInto(place: HTMLElement): void {
    if (this.frame.panel.closest(".nt-apart")?.parentElement === place) return;
    this.frame.setApart(place);
    applyTheme(this.frame.apart, this.core.theme);
  }

  statistics(): TimelineStatistics {
    const { kind, frames, frameMs } = this.renderer;
    const { cache } = this.core;
    return {
      painter: kind,
      frames,
      frameMs: [...frameMs],
      cacheBytes: cache.bytes,
      chunks: cache.size,
      isSharp: this.sharpAt > 0,
      sharpAt: this.sharpAt,
    };
  }

  destroy(): void {
    this.core.abort.abort();
    clearTimeout(this.restTimer);
    clearTimeout(this.settleTimer);
    this.details.destroy();
    this.lit.destroy();
    this.bands.destroy();
    this.search.destroy();
    this.dependencies.clear();
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
      this.foldedFor = this.openedOn();
      const answer = await requestJson<TracksAnswer>(this.core.source, "tracks", this.foldedFor, this.core.abort.signal);
      const summary = await this.withBases(readSummary(answer));
      this.headers.setTitle(summary.isComplete ? summary.name : `${summary.name} (incomplete)`);
      this.frame.say(summary.tracks.length > 0 ? null : "This profile has no spans and no counters to show.");
      this.core.open(summary);
      this.map.open(summary.tracks);
      this.legend.open(summary.tracks);
      this.bar.setGrouping(this.view.grouping);
      void this.colourOperations();
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

  async refresh(): Promise<void> {
    const { core } = this;
    if (!core.summary || this.isComparing) return;
    const answer = await requestJson<TracksAnswer>(core.source, "tracks", this.openedOn(), core.abort.signal);
    const summary = readSummary(answer);
    this.headers.setTitle(summary.isComplete ? summary.name : `${summary.name} (incomplete)`);
    this.frame.say(summary.tracks.length > 0 ? null : "Nothing has been recorded yet.");
    core.loader.want([]); // what is on its way is of tracks as they stood before
    core.cache.clear();
    core.open(summary);
    this.map.open(summary.tracks);
    this.legend.open(summary.tracks);
    void this.colourOperations();
  }

  /** The range that is opened, so that what is idle there is folded at once; in a comparison nothing is. */
  private openedOn(): Record<string, string> {
    const { range } = this.view;
    return range && !this.isComparing ? { start: String(Math.floor(range.startNs)), end: String(Math.ceil(range.endNs)) } : {};
  }

  /** Fold what is idle in the range to which the host went. */
  private async foldIdle(): Promise<void> {
    const { core } = this;
    const params = this.openedOn();
    if (!core.summary || this.isComparing || JSON.stringify(params) === JSON.stringify(this.foldedFor)) return;
    this.foldedFor = params;
    if (!params["start"]) {
      core.setIdle(isEmpty);
      return;
    }
    try {
      const answer = await requestJson<{ tracks: (RangeUse & { track: number })[] }>(core.source, "statistics", params, core.abort.signal);
      if (params !== this.foldedFor) return;
      const uses = new Map(answer.tracks.map((use) => [use.track, use]));
      core.setIdle((track) => isIdleIn(track, uses.get(track.listed)));
    } catch (error) {
      if (!isAbort(error)) this.fail(error);
    }
  }

  /** Operations in the colour of the engine that they keep busy; a source that does not know leaves them grey. */
  private async colourOperations(): Promise<void> {
    const { core } = this;
    try {
      core.recolour({ engines: await requestJson<NamedEngines>(core.source, "engines", {}, core.abort.signal) });
    } catch {
      // Not every host has this route; nothing but the colours of operations depends on it.
    }
  }

  /** What colours stand for, where spans have that of what they belong to. */
  private async groupNames(by: GroupedBy): Promise<readonly string[]> {
    const { source, abort } = this.core;
    try {
      return (await requestJson<{ names: string[] }>(source, "groups", { color: by }, abort.signal)).names;
    } catch (error) {
      if (!isAbort(error)) this.fail(error);
      return [];
    }
  }

  private get isComparing(): boolean {
    return (this.options.compare?.length ?? 0) > 0;
  }

  /** The profile with the tracks of those that it is compared with. */
  private async withBases(summary: ProfileSummary): Promise<ProfileSummary> {
    if (!this.isComparing) return summary;
    const { core } = this;
    const bases = await Promise.all((this.options.compare ?? []).map((other) => this.base(other)));
    const comparison = new Comparison(summary, bases, core.names);
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
    return comparison.all();
  }

  private async base({ source, name, shiftNs }: ComparedProfile): Promise<Base> {
    const answer = await requestJson<TracksAnswer>(source, "tracks", {}, this.core.abort.signal);
    const summary = readSummary(answer);
    return { source, summary: { ...summary, name: name ?? summary.name }, shiftNs };
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
    core.loader.want([...demandsFor(layout, viewport), this.map.demand]);
    this.lit.want();
    const tracks = visibleTracks(layout, viewport);
    const isDrawnSharp = isSharp(core.cache, tracks, sharpTiles(viewport.scale), viewport.bounds);
    if (!isDrawnSharp || !this.lit.isSharp || core.comparison?.isLoaded === false) this.sharpAt = 0;
    else if (this.sharpAt === 0) {
      this.sharpAt = performance.now();
      this.rest();
    }
    const now = performance.now();
    if (now - this.statusAt > STATUS_MS) this.showStatus();
    this.map.draw(() => this.search.times);
    core.cache.trim(() => false);
  }

  /** Every change of a text makes the page lay itself out, so not in every frame. */
  private showStatus(): void {
    this.statusAt = performance.now();
    const { viewport, loader } = this.core;
    const loading = loader.isLoading || this.lit.isLoading ? " · loading…" : "";
    this.bar.setStatus(`${durationText(lengthOf(viewport.range))} in sight${loading}`);
  }

  private changed(changed: ReadonlySet<ViewPart>): void {
    if (changed.has("range")) this.tooltip.hide();
    if (REDRAWN.some((part) => changed.has(part))) this.sharpAt = 0; // until the next frame has looked
    if (changed.has("highlight")) this.showLit();
    if (changed.has("grouping")) this.bar.setGrouping(this.view.grouping);
    if (changed.has("search") || changed.has("markers") || changed.has("size")) this.map.redraw();
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
      this.sums.update(this.renderer.rows);
      this.headers.refreshNotes();
      this.showStatus();
      this.reader.show(this.renderer.rows, core.viewport.range, core.names);
      if (this.sharpAt > 0) this.walking.resume();
      this.tellHost();
      this.settleTimer = window.setTimeout(() => this.sharpAt > 0 && this.settle(), SETTLE_MS);
    }, REST_MS);
  }

  /** Nothing has happened for a while: there is time for what nobody waits for. */
  private settle(): void {
    this.renderer.settle();
    if (!this.isComparing) this.bands.start();
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
    if (zoom !== 0) next = zoomed(next, Math.exp(zoom), this.pointing.timeNs ?? scale.toNs(scale.width / 2));
    this.core.show(next);
  }

  private readonly actions: Readonly<Record<KeyAction, () => void>> = {
    "zoom-in": () => this.held(0, -0.5),
    "zoom-out": () => this.held(0, 0.5),
    "fit-all": () => this.core.show(this.core.viewport.bounds),
    "fit-selection": () => this.choice.fit(),
    "row-up": () => this.walking.stepRow(-1),
    "row-down": () => this.walking.stepRow(1),
    "span-previous": () => this.walking.stepSpan(-1),
    "span-next": () => this.walking.stepSpan(1),
    "page-up": () => this.core.scrollTo(this.core.viewport.scrollTop - this.core.viewport.height * 0.8),
    "page-down": () => this.core.scrollTo(this.core.viewport.scrollTop + this.core.viewport.height * 0.8),
    fold: () => this.walking.withRow((row) => this.core.fold(row)),
    pin: () => this.walking.withRow((row) => this.core.pin(row)),
    mark: () => this.markers.toggle(this.pointing.edgeNs),
    note: () => this.markers.write(this.pointing.edgeNs),
    markers: () => this.savedMarkers.toggle(),
    measure: () => this.measure.step(this.pointing.edgeNs),
    search: () => this.search.focus(),
    "hit-next": () => this.search.step(1),
    "hit-previous": () => this.search.step(-1),
    highlight: () => {
      this.lit.toggleChosen().catch((error: unknown) => isAbort(error) || this.fail(error));
    },
    dependencies: () => this.dependencies.toggle(),
    clear: () => this.clear(),
    help: () => this.help.toggle(),
  };

  private clear(): void {
    this.gestures.reset();
    this.measure.clear();
    this.core.update({ span: null, selection: null, highlight: null });
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
