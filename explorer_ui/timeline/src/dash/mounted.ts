/** A timeline of given properties that stands in the page, and tells what the user does with it. */

import { type DataSource, HttpSource } from "../data/source.js";
import type { Selection, SourcePlace, TimelineHandle } from "../options.js";
import { createTimeline } from "../timeline.js";
import type { TimelineView } from "../view/view_state.js";
import { sourceAddress, writeAddress } from "./address.js";
import { HttpMarkerStore } from "./marker_store.js";
import { comparedFrom, type ComponentProps, optionsFrom, viewFrom } from "./properties.js";

declare global {
  interface Window {
    /** Timelines on the page by their element's id, for scripts and tests. */
    neuronTimelines?: Map<string, TimelineHandle>;
  }
}

export class Mounted {
  readonly handle: TimelineHandle;
  /** Views that Dash was told, from the one heard of last on: hearing of them, late or again, changes nothing. */
  private told: string[];

  /**
   * @param host The element that the page around hears of it.
   * @param container What the timeline is drawn in: the host, or an element that it will get.
   * @param source Where its data comes from; the routes of its profile by default.
   */
  constructor(
    public host: HTMLElement,
    private readonly container: HTMLElement,
    public props: ComponentProps,
    source: DataSource = sourceOf(props),
  ) {
    const view = viewFrom(props);
    this.told = [JSON.stringify(view)];
    this.handle = createTimeline(container, {
      ...optionsFrom(props),
      source,
      markerStore: new HttpMarkerStore(routesOf(props, props.profile)),
      compare: comparedFrom(props).map(({ profile, name, shift_ns: shiftNs }) => ({
        source: new HttpSource(routesOf(props, profile)),
        ...(name && { name }),
        ...(typeof shiftNs === "number" && { shiftNs }),
      })),
      view,
      onViewChange: (changed) => this.tell(changed),
      onSelect: (selection) => this.tellSelection(selection),
      onOpenSource: (place) => this.openSource(place),
    });
    (window.neuronTimelines ??= new Map()).set(this.id, this.handle);
  }

  /** Show the view that Dash asks for, unless it only repeats what it was told. */
  hear(view: string): void {
    const place = this.told.lastIndexOf(view);
    if (place >= 0) {
      this.told.splice(0, place);
      return;
    }
    this.told = [view];
    this.handle.setView(JSON.parse(view) as Partial<TimelineView>);
  }

  destroy(): void {
    this.handle.destroy();
    if (this.container !== this.host) this.container.remove();
    window.neuronTimelines?.delete(this.id);
  }

  private get id(): string {
    return this.props.id ?? "";
  }

  private tell(view: TimelineView): void {
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
    const { props } = this;
    if (props.setProps) this.told.push(JSON.stringify(viewFrom({ ...props, ...next } as ComponentProps)));
    props.setProps?.(next);
    if (props.writes_address) writeAddress(view);
    this.dispatch("view", view);
  }

  private tellSelection(selection: Selection): void {
    if (selection.details) this.props.setProps?.({ details: selection.details, source: selection.source });
    this.dispatch("select", selection);
  }

  private openSource(place: SourcePlace): void {
    const { setProps, source_address: address } = this.props;
    setProps?.({ open_source: { ...place } });
    if (address) location.assign(sourceAddress(address, place.file, place.line));
    this.dispatch("source", place);
  }

  /** Tell the page around the component, which need not be Dash's: events `neuron-timeline-...` of the element. */
  private dispatch(name: string, detail: unknown): void {
    this.host.dispatchEvent(new CustomEvent(`neuron-timeline-${name}`, { detail, bubbles: true }));
  }
}

/** The routes of a component's profile. */
export function sourceOf(props: ComponentProps): DataSource {
  return new HttpSource(routesOf(props, props.profile));
}

function routesOf(props: ComponentProps, profile: string): string {
  return `${props.data_url ?? "/data/"}${encodeURIComponent(profile)}/`;
}
