/** The panel below the plot: all that is known of the chosen span, and sums over the chosen range. */

import type { Core } from "../core.js";
import { isAbort, requestJson } from "../data/source.js";
import type { Selection, SourcePlace } from "../options.js";
import { button, element, saveText } from "../panels/dom.js";
import { lengthOf, type TimeRange } from "../view/time_range.js";
import { countText, durationText, exactText, shareText } from "../view/time_text.js";
import type { Highlight, SpanRef } from "../view/view_state.js";
import { type NameSum, rangeCsv, type TrackSum } from "./range_csv.js";
import { spanColumns } from "./span_columns.js";

interface DetailsAnswer {
  columns: Record<string, unknown>;
  source: SourcePlace | null;
  /** A query whose answer is the span's row. */
  sql?: string;
  belongs: { by: Highlight["by"]; value: string; level: string; name: string }[];
}

interface StatisticsAnswer {
  tracks: TrackSum[];
}

interface NamesAnswer {
  names: NameSum[];
  /** A query whose answer are the spans of the track in the range. */
  sql?: string;
  /** Whether `time_ns` is charged device time, which adds up; else that of the spans themselves. */
  is_charged: boolean;
}

export interface DetailsTarget {
  onDetails(selection: Selection): void;
  onOpenSource: ((place: SourcePlace) => void) | undefined;
  showDependencies(): void;
}

interface WantedRange {
  readonly range: TimeRange;
  readonly isDragged: boolean;
}

const MOST_TRACKS = 14;

export class Details {
  private readonly spanColumn = element("div", "");
  private readonly rangeColumn = element("div", "");
  private spanRequest: AbortController | null = null;
  private wanted: WantedRange | null = null;
  private isFetching = false;
  private shownSpan = "";
  private names: { names: readonly NameSum[]; track: string } = { names: [], track: "" };

  constructor(
    private readonly core: Core,
    private readonly panel: HTMLElement,
    private readonly target: DetailsTarget,
  ) {
    panel.append(element("div", "nt-panel-columns", {}, [this.spanColumn, this.rangeColumn]));
    core.onChange((changed) => {
      if (changed.has("span")) this.showSpan(core.view.span);
      if (changed.has("selection")) this.showRange(core.view.selection, false);
    });
  }

  /** Show sums of a range while it is still being chosen: soon, and not for every step. */
  drag(range: TimeRange | null): void {
    if (range) this.showRange(range, true);
    else this.showRange(this.core.view.selection, false);
  }

  /** Show what the view holds from the beginning. */
  start(): void {
    if (this.core.view.span) this.showSpan(this.core.view.span);
    if (this.core.view.selection) this.showRange(this.core.view.selection, false);
  }

  destroy(): void {
    this.spanRequest?.abort();
  }

  private showPanel(): void {
    this.panel.hidden = this.spanColumn.childElementCount === 0 && this.rangeColumn.childElementCount === 0;
  }

  private showSpan(span: SpanRef | null): void {
    const key = span ? `${span.track} ${span.row} ${span.startNs}` : "";
    if (key === this.shownSpan) return;
    this.shownSpan = key;
    this.spanRequest?.abort();
    this.spanColumn.replaceChildren();
    this.showPanel();
    const track = span && this.core.track(span.track);
    if (!span || !track) return;
    this.spanColumn.append(this.spanHead(span, track.name));
    this.showPanel();
    const request = (this.spanRequest = new AbortController());
    const { source, params: own } = this.core.originOf(track);
    const params = { ...(track.isBand && own), track: String(track.listed), row: String(span.row), depth: String(span.depth ?? 0) };
    requestJson<DetailsAnswer>(source, track.isBand ? "bands/details" : "details", params, request.signal).then(
      (answer) => {
        if (request.signal.aborted) return;
        this.spanColumn.append(this.spanBody(answer, !track.isBand));
        this.target.onDetails({ span, range: this.core.view.selection, details: answer.columns, source: answer.source });
      },
      (error: unknown) => {
        if (isAbort(error) || request.signal.aborted) return;
        this.spanColumn.append(element("p", "", { text: error instanceof Error ? error.message : String(error) }));
      },
    );
  }

  private spanHead(span: SpanRef, trackName: string): HTMLElement {
    const close = button("nt-button", "✕", "Close the details", () => this.core.update({ span: null }));
    const facts = `${trackName} · ${durationText(span.durationNs)} · from ${exactText(span.startNs)}`;
    return element("div", "", {}, [
      element("div", "nt-panel-head", {}, [element("h3", "", { text: span.name || "(no name)" }), close]),
      element("div", "", { text: facts }),
    ]);
  }

  private spanBody(answer: DetailsAnswer, hasWaits: boolean): HTMLElement {
    const rows: (readonly [string, string | Node])[] = answer.belongs.map((one) => [one.level, this.litLink(one)]);
    if (answer.source) rows.push(["Source", this.sourceLink(answer.source)]);
    if (hasWaits) rows.push(["Waits", link("show the chain", () => this.target.showDependencies(), "What it waited for, and what waited for it (C)")]);
    if (answer.sql) rows.push(["Query", copyLink(answer.sql)]);
    const { told, folded } = spanColumns(answer.columns, answer.belongs.map((one) => one.level));
    rows.push(...told);
    if (folded.length === 0) return fields(rows);
    const all = element("details", "nt-raw", {}, [element("summary", "", { text: `${folded.length} more ${folded.length === 1 ? "column" : "columns"}` }), fields(folded, "nt-raw-fields")]);
    return element("div", "", {}, [fields(rows), all]);
  }

  private litLink(one: DetailsAnswer["belongs"][number]): HTMLElement {
    return link(one.name, () => {
      const { highlight } = this.core.view;
      const isOn = highlight?.by === one.by && highlight.value === one.value;
      this.core.update({ highlight: isOn ? null : { by: one.by, value: one.value, label: one.name } });
    }, `Light up everything of ${one.name}`);
  }

  private sourceLink(place: SourcePlace): Node {
    const name = `${place.file}:${place.line}`;
    const open = this.target.onOpenSource;
    return open ? link(name, () => open(place), `Open ${name}`) : document.createTextNode(name);
  }

  /** Sums of a range; one request at a time, and the newest range next. */
  private showRange(range: TimeRange | null, isDragged: boolean): void {
    this.wanted = range && lengthOf(range) >= 1 ? { range, isDragged } : null;
    if (!this.wanted) {
      this.rangeColumn.replaceChildren();
      this.showPanel();
    } else if (!this.isFetching) void this.fetchWanted();
  }

  private async fetchWanted(): Promise<void> {
    this.isFetching = true;
    for (let wanted = this.wanted; wanted; wanted = this.wanted === wanted ? null : this.wanted) {
      await this.fetchRange(wanted);
    }
    this.isFetching = false;
  }

  private async fetchRange(wanted: WantedRange): Promise<void> {
    const { range } = wanted;
    const params = { start: String(Math.floor(range.startNs)), end: String(Math.ceil(range.endNs)) };
    const { source, abort } = this.core;
    try {
      const sums = await requestJson<StatisticsAnswer>(source, "statistics", params, abort.signal);
      if (this.wanted === null) return;
      const shown = element("div", "nt-panel-columns", {}, [this.rangeHead(range, () => this.saveRange(sums)), this.rangeTable(sums, range)]);
      this.names = { names: [], track: "" };
      this.rangeColumn.replaceChildren(shown);
      this.showPanel();
      const track = this.namedTrack(sums);
      if (wanted.isDragged || this.wanted !== wanted || !track) return;
      const ofTrack = { ...params, track: String(track.place) };
      const named = await requestJson<NamesAnswer>(source, "names", ofTrack, abort.signal);
      if (!shown.isConnected) return;
      this.names = { names: named.names, track: track.name };
      shown.append(this.namesTable(named, track.name, range));
    } catch (error) {
      if (isAbort(error) || this.wanted === null) return;
      this.rangeColumn.replaceChildren(element("p", "", { text: error instanceof Error ? error.message : String(error) }));
      this.showPanel();
    }
  }

  /** Whose names are shown: those of the active track, or of the chosen span's, or of the busiest engine. */
  private namedTrack(sums: StatisticsAnswer): { place: number; name: string } | undefined {
    const active = this.core.track(this.core.activeId ?? "") ?? this.core.track(this.core.view.span?.track ?? "");
    if (active && !active.isCounter && !active.isBand) return active;
    const tracks = this.core.summary?.tracks ?? [];
    const engines = sums.tracks.filter((sum) => tracks[sum.track]?.level === "engine");
    const busiest = (engines.length > 0 ? engines : sums.tracks).reduce<StatisticsAnswer["tracks"][number] | null>(
      (best, sum) => (best && best.busy_share >= sum.busy_share ? best : sum),
      null,
    );
    return busiest ? tracks[busiest.track] : undefined;
  }

  private saveRange(sums: StatisticsAnswer): void {
    const tracks = this.core.summary?.tracks ?? [];
    const { names, track } = this.names;
    saveText("range.csv", rangeCsv(sums.tracks, (place) => tracks[place]?.name ?? "", names, track), "text/csv");
  }

  private rangeHead(range: TimeRange, onSave: () => void): HTMLElement {
    const save = button("nt-button", "CSV", "Save the sums of all tracks as CSV", onSave);
    const close = button("nt-button", "✕", "Clear the range", () => this.core.update({ selection: null }));
    const zoom = button("nt-button", "Zoom", "Zoom to the range (F)", () => this.core.fit(range));
    return element("div", "", {}, [
      element("div", "nt-panel-head", {}, [
        element("h3", "", { text: `Range of ${durationText(lengthOf(range))}` }),
        zoom,
        save,
        close,
      ]),
      element("div", "", { text: `from ${exactText(range.startNs)}` }),
      element("div", "", { text: `to ${exactText(range.endNs)}` }),
    ]);
  }

  private rangeTable(sums: StatisticsAnswer, range: TimeRange): HTMLElement {
    const tracks = this.core.summary?.tracks ?? [];
    const visible = sums.tracks.filter((sum) => tracks[sum.track]?.level !== "dma_queue" || sums.tracks.length <= MOST_TRACKS);
    const queues = sums.tracks.filter((sum) => !visible.includes(sum));
    const rows = visible.slice(0, MOST_TRACKS).map((sum) => [
      tracks[sum.track]?.name ?? "",
      countText(sum.count),
      shareText(sum.busy_share),
      durationText(sum.span_ns),
    ]);
    if (queues.length > 0) {
      const spanNs = queues.reduce((sum, queue) => sum + queue.span_ns, 0);
      const count = queues.reduce((sum, queue) => sum + queue.count, 0);
      const busiest = Math.max(...queues.map((queue) => queue.busy_share));
      rows.push([`${queues.length} DMA queues`, countText(count), `≤ ${shareText(busiest)}`, durationText(spanNs)]);
    }
    const left = visible.length - MOST_TRACKS;
    if (left > 0) rows.push([`${left} more tracks`, "", "", ""]);
    if (rows.length === 0) return element("p", "", { text: `Nothing happens in these ${durationText(lengthOf(range))}.` });
    return numbers(["Track", "Spans", "Busy", "Time in spans"], rows);
  }

  private namesTable(answer: NamesAnswer, trackName: string, range: TimeRange): HTMLElement {
    const rows = answer.names.map((one) => [
      one.name || "(no name)",
      one.count === null ? "" : countText(one.count),
      durationText(one.time_ns),
      shareText(one.time_ns / lengthOf(range)),
      one.longest_ns === null ? "" : durationText(one.longest_ns),
    ]);
    if (rows.length === 0) return element("span", "");
    const table = numbers([`On ${trackName}`, "Spans", answer.is_charged ? "Charged" : "In spans", "Of the range", "Longest span"], rows);
    return element("div", "", {}, [table, ...(answer.sql ? [copyLink(answer.sql)] : [])]);
  }
}

/** Names with values, in as many columns as there is room for. */
function fields(rows: readonly (readonly [string, string | Node])[], className = "nt-fields"): HTMLElement {
  const pairs = rows.map(([name, value]) =>
    element("div", "", {}, [element("dt", "", { text: name }), element("dd", "", {}, [value])]),
  );
  return element("dl", className, {}, pairs);
}

function numbers(heads: readonly string[], rows: readonly (readonly string[])[]): HTMLTableElement {
  const kind = (place: number): string => (place === 0 ? "" : "nt-number");
  const head = heads.map((name, place) => {
    const cell = element("th", kind(place), { text: name });
    cell.scope = "col";
    return cell;
  });
  const body = rows.map((row) => element("tr", "", {}, row.map((value, place) => element("td", kind(place), { text: value }))));
  return element("table", "", {}, [element("thead", "", {}, [element("tr", "", {}, head)]), element("tbody", "", {}, body)]);
}

function link(name: string, onClick: () => void, title = name): HTMLElement {
  const made = element("button", "nt-link", { text: name, title, onClick });
  made.type = "button";
  return made;
}

/** A link that copies a query, for the page Query or `neuron-profile query`. */
function copyLink(sql: string): HTMLElement {
  const made = link("Copy as SQL", () => {
    navigator.clipboard.writeText(sql).then(
      () => (made.textContent = "Copied"),
      () => made.replaceWith(element("code", "", { text: sql })), // the browser does not allow it: here it is to be marked
    );
  }, sql);
  return made;
}
