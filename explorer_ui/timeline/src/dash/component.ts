/** The Dash component `NeuronTimeline`: a React component that holds the engine, with view state as its properties. */

import { HttpSource } from "../data/source.js";
import type { Selection, SourcePlace, TimelineHandle } from "../options.js";
import { createTimeline } from "../timeline.js";
import type { TimelineView } from "../view/view_state.js";
import { sourceAddress, writeAddress } from "./address.js";
import { HttpMarkerStore } from "./marker_store.js";
import { comparedFrom, type ComponentProps, optionsFrom, viewFrom } from "./properties.js";

interface ReactLibrary {
  readonly createElement: (kind: string, props: object) => unknown;
  readonly useEffect: (effect: () => (() => void) | undefined, dependencies: readonly unknown[]) => void;
  readonly useRef: <T>(value: T) => { current: T };
}

declare global {
  interface Window {
    React: ReactLibrary;
    neuron_timeline?: Record<string, unknown>;
    /** Timelines on the page by their element's id, for scripts and tests. */
    neuronTimelines?: Map<string, TimelineHandle>;
  }
}

interface Live {
  handle: TimelineHandle;
  /** Views that Dash was told, from the one heard of last on: hearing of them, late or again, changes nothing. */
  told: string[];
}

/** The component; Dash gives `setProps` with the properties. */
function NeuronTimeline(props: ComponentProps): unknown {
  const { createElement, useEffect, useRef } = window.React;
  const holder = useRef<HTMLElement | null>(null);
  const live = useRef<Live | null>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const container = holder.current;
    if (!container || !props.profile) return undefined;
    const made = mount(container, latest, live);
    live.current = made;
    const id = props.id ?? "";
    (window.neuronTimelines ??= new Map()).set(id, made.handle);
    return () => {
      made.handle.destroy();
      live.current = null;
      window.neuronTimelines?.delete(id);
    };
  }, [props.profile, JSON.stringify(props.compare ?? null), props.data_url]);
  const view = JSON.stringify(viewFrom(props));
  useEffect(() => {
    const current = live.current;
    if (!current) return undefined;
    const place = current.told.lastIndexOf(view);
    if (place >= 0) {
      current.told.splice(0, place);
      return undefined;
    }
    current.told = [view];
    current.handle.setView(JSON.parse(view) as Partial<TimelineView>);
    return undefined;
  }, [view]);
  useEffect(() => {
    live.current?.handle.setTheme(props.theme ?? "system");
    return undefined;
  }, [props.theme]);
  return createElement("div", {
    id: props.id,
    ref: holder,
    className: props.className,
    style: { height: "100%", ...props.style },
  });
}

function mount(container: HTMLElement, latest: { current: ComponentProps }, live: { current: Live | null }): Live {
  const props = latest.current;
  const base = props.data_url ?? "/data/";
  const told = viewFrom(props);
  const routesOf = (profile: string): string => `${base}${encodeURIComponent(profile)}/`;
  const routes = routesOf(props.profile);
  const handle = createTimeline(container, {
    ...optionsFrom(props),
    source: new HttpSource(routes),
    markerStore: new HttpMarkerStore(routes),
    compare: comparedFrom(props).map(({ profile, name, shift_ns: shiftNs }) => ({
      source: new HttpSource(routesOf(profile)),
      ...(name && { name }),
      ...(typeof shiftNs === "number" && { shiftNs }),
    })),
    view: told,
    onViewChange: (view) => {
      tell(latest.current, live.current, view);
      dispatch(container, "view", view);
    },
    onSelect: (selection) => {
      tellSelection(latest.current, selection);
      dispatch(container, "select", selection);
    },
    onOpenSource: (place) => {
      openSource(latest.current, place);
      dispatch(container, "source", place);
    },
  });
  return { handle, told: [JSON.stringify(told)] };
}

/** Tell the page around the component, which need not be Dash's: events `neuron-timeline-...` of the element. */
function dispatch(container: HTMLElement, name: string, detail: unknown): void {
  container.dispatchEvent(new CustomEvent(`neuron-timeline-${name}`, { detail, bubbles: true }));
}

function openSource(props: ComponentProps, place: SourcePlace): void {
  props.setProps?.({ open_source: { ...place } });
  if (props.source_address) location.assign(sourceAddress(props.source_address, place.file, place.line));
}

function tell(props: ComponentProps, live: Live | null, view: TimelineView): void {
  const next = {
    range: view.range ? [view.range.startNs, view.range.endNs] : null,
    selection: view.selection ? [view.selection.startNs, view.selection.endNs] : null,
    pinned: view.pinned,
    collapsed: view.collapsed,
    expanded: view.expanded,
    highlight: view.highlight,
    markers: view.markers,
    search: view.search,
    grouping: view.grouping,
    span: view.span,
  };
  if (live && props.setProps) live.told.push(JSON.stringify(viewFrom({ ...props, ...next } as ComponentProps)));
  props.setProps?.(next);
  if (props.writes_address) writeAddress(view);
}

function tellSelection(props: ComponentProps, selection: Selection): void {
  if (selection.details) props.setProps?.({ details: selection.details, source: selection.source });
}

(window.neuron_timeline ??= {})["NeuronTimeline"] = NeuronTimeline;
