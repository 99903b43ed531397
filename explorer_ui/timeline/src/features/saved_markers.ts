/** Markers that are saved, loaded, and compared with those of the view. */

import type { Core } from "../core.js";
import type { MarkerSets, MarkerStore, SavedMarkers } from "../options.js";
import { MarkerList } from "../panels/marker_list.js";
import type { Marker } from "../view/view_state.js";
import { comparedMarkers, inOrder } from "../view/compared_markers.js";

const NONE: MarkerSets = { sets: [], canSave: false };

export class SavedMarkersBox {
  readonly list: MarkerList;
  private known: MarkerSets = NONE;
  private compared: SavedMarkers | null = null;

  constructor(
    private readonly core: Core,
    private readonly store: MarkerStore | null,
  ) {
    const changed = (markers: readonly Marker[]): void => core.update({ markers });
    this.list = new MarkerList({
      onGo: (marker) => this.go(marker),
      onNote: (marker, text) => changed(core.view.markers.map((one) => (one === marker ? { ...one, text } : one))),
      onRemove: (marker) => changed(core.view.markers.filter((one) => one !== marker)),
      onSave: (name) => void this.keep(name, inOrder(core.view.markers), `Saved ${name.trim()}.`),
      onForget: (set) => void this.keep(set.name, [], `Deleted ${set.name}.`),
      onLoad: (set) => changed(set.markers),
      onCompare: (set) => this.compare(set),
    });
    core.onChange((parts) => {
      if (parts.has("markers")) this.show();
    });
  }

  toggle(): void {
    this.list.toggle();
    if (!this.list.isOpen) return;
    this.list.say("");
    this.show();
    if (this.store) void this.told(this.store.load(), "");
  }

  private go({ timeNs }: Marker): void {
    const { startNs, endNs } = this.core.viewport.range;
    const half = (endNs - startNs) / 2;
    this.core.show({ startNs: timeNs - half, endNs: timeNs + half });
  }

  private async keep(name: string, markers: readonly Marker[], done: string): Promise<void> {
    if (this.store) await this.told(this.store.save(name, markers), done);
  }

  private async told(answer: Promise<MarkerSets>, done: string): Promise<void> {
    try {
      this.known = await answer;
      this.list.say(done);
    } catch (error) {
      this.list.say(error instanceof Error ? error.message : String(error));
    }
    this.show();
  }

  private compare(set: SavedMarkers | null): void {
    this.compared = set;
    this.show();
  }

  private show(): void {
    const { markers } = this.core.view;
    const found = this.compared ? comparedMarkers(markers, this.compared.markers) : [];
    this.core.setOverlays({ compared: found });
    if (!this.list.isOpen) return;
    const later = new Map(found.flatMap(({ own, laterNs }) => (own && laterNs !== null ? [[own, laterNs] as const] : [])));
    this.list.show({ ...this.known, markers, compared: this.compared, laterNs: later });
  }
}
