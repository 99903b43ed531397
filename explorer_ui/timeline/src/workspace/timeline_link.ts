/** The timeline's part in the workspace: what is chosen in it is told, and what is chosen elsewhere is shown in it. */

import type { Selection, SourcePlace, TimelineHandle } from "../options.js";
import { groupingOf } from "../view/grouping.js";
import type { TimeRange } from "../view/time_range.js";
import type { TimelineView } from "../view/view_state.js";
import type { Changes } from "./address.js";
import { chosenText, highlightOf, parseChosen } from "./selection.js";

const ID = "timeline";
/** Room at either side of a scope that is shown, as a part of it: one of so many, as the server opens with. */
const MARGIN_PARTS = 50;

export interface TimelineEvents {
  /** The user moved, folded, marked or searched; `isMoved`: the range in sight changed. */
  readonly onView: (changes: Changes, isMoved: boolean) => void;
  readonly onSpan: (changes: Changes) => void;
  readonly onRange: (range: TimeRange) => void;
  readonly onSource: (place: SourcePlace) => void;
}

export class TimelineLink {
  private shownView = "";

  constructor(
    private readonly content: HTMLElement,
    private readonly events: TimelineEvents,
  ) {
    content.addEventListener("neuron-timeline-view", (event) => this.viewed((event as CustomEvent<TimelineView>).detail));
    content.addEventListener("neuron-timeline-select", (event) => this.selected((event as CustomEvent<Selection>).detail));
    content.addEventListener("neuron-timeline-source", (event) => events.onSource((event as CustomEvent<SourcePlace>).detail));
  }

  /** Whether the panel has a timeline, if not yet one that can be asked. */
  get isThere(): boolean {
    return this.content.querySelector(`#${ID}`) !== null;
  }

  get handle(): TimelineHandle | undefined {
    return this.isThere ? window.neuronTimelines?.get(ID) : undefined;
  }

  /** Whether everything in sight was drawn from data of its own resolution once. */
  get isSharp(): boolean {
    return (this.handle?.statistics().sharpAt ?? 0) > 0;
  }

  /** Show what the address says; `isScopeNew`: the view goes to the scope unless the address says where it is. */
  show(params: URLSearchParams): void {
    const { handle } = this;
    if (!handle) return;
    const chosen = parseChosen(params.get("sel"));
    const span = parsed(params.get("span")) as TimelineView["span"];
    const view: Partial<TimelineView> = {
      range: rangeOf(params),
      selection: pairOf(parsed(params.get("selection"))),
      span,
      highlight: chosen && !span ? highlightOf(chosen) : null,
      search: params.get("search") ?? "",
      pinned: listOf(params.get("pinned")),
      collapsed: listOf(params.get("collapsed")),
      expanded: listOf(params.get("expanded")),
      markers: listOf(params.get("markers")),
      grouping: groupingOf(params.get("group")),
    };
    handle.setScope(scopeOf(params));
    const text = JSON.stringify(view);
    if (text === this.shownView) return;
    this.shownView = text;
    handle.setView(view);
  }

  /** Forget what was shown, as the timeline is another one now. */
  reset(): void {
    this.shownView = "";
  }

  private viewed(view: TimelineView): void {
    const list = (values: readonly unknown[]): string | null => (values.length > 0 ? JSON.stringify(values) : null);
    const t = view.range ? `${Math.floor(view.range.startNs)}-${Math.ceil(view.range.endNs)}` : "all";
    const isMoved = t !== textOf(rangeOf(new URLSearchParams(location.search)));
    this.events.onView(
      {
        ...(isMoved && { t }),
        pinned: list(view.pinned),
        collapsed: list(view.collapsed),
        expanded: list(view.expanded),
        markers: list(view.markers),
        search: view.search || null,
        group: view.grouping === "process" ? null : view.grouping,
      },
      isMoved,
    );
  }

  private selected({ span, range, details }: Selection): void {
    const now = new URLSearchParams(location.search);
    const before = pairOf(parsed(now.get("selection")));
    if (range && (range.startNs !== before?.startNs || range.endNs !== before.endNs)) this.events.onRange(range);
    const text = span ? JSON.stringify(span) : null;
    if (!details && span) return; // what it belongs to arrives a moment later
    if (text === now.get("span")) return;
    this.events.onSpan({ span: text, sel: details ? belongsTo(details) : span ? null : now.get("sel") });
  }
}

/** What a span's row says that it is part of: its line, else its operation, else its module. */
function belongsTo(details: Readonly<Record<string, unknown>>): string | null {
  const { source_file: file, source_line: line, framework_name: operation, layer } = details;
  if (typeof operation === "string" && operation) return chosenText({ kind: "operation", key: operation });
  if (typeof file === "string" && typeof line === "number" && file && line) return chosenText({ kind: "line", key: `${file}:${line}` });
  return typeof layer === "string" && layer ? chosenText({ kind: "module", key: layer }) : null;
}

/** The range that the timeline has in sight: what the address says, else the scope with some room, else everything. */
export function rangeOf(params: URLSearchParams): TimeRange | null {
  const asked = /^(\d+)-(\d+)$/.exec(params.get("t") ?? "");
  if (asked) return { startNs: Number(asked[1]), endNs: Number(asked[2]) };
  const [start, end] = [Number(params.get("start_ns")), Number(params.get("end_ns"))];
  if (params.get("t") === "all" || !(end > start)) return null;
  const margin = Math.max(1, Math.floor((end - start) / MARGIN_PARTS));
  return { startNs: Math.max(0, start - margin), endNs: end + margin };
}

/** The range that all figures are of; null for all of the profile. */
function scopeOf(params: URLSearchParams): TimeRange | null {
  const [start, end] = [Number(params.get("start_ns")), Number(params.get("end_ns"))];
  return end > start ? { startNs: start, endNs: end } : null;
}

function textOf(range: TimeRange | null): string {
  return range ? `${Math.floor(range.startNs)}-${Math.ceil(range.endNs)}` : "all";
}

function pairOf(value: unknown): TimeRange | null {
  const [start, end] = Array.isArray(value) ? (value as unknown[]) : [];
  return typeof start === "number" && typeof end === "number" && end > start ? { startNs: start, endNs: end } : null;
}

function listOf<T>(text: string | null): T[] {
  const value = parsed(text);
  return Array.isArray(value) ? (value as T[]) : [];
}

function parsed(text: string | null): unknown {
  try {
    return text ? (JSON.parse(text) as unknown) : null;
  } catch {
    return null;
  }
}
