/** The list of markers with what is saved: a box that the bar's button opens. */

import { inOrder } from "../view/compared_markers.js";
import type { SavedMarkers } from "../options.js";
import { durationText, exactText, signedText } from "../view/time_text.js";
import type { Marker } from "../view/view_state.js";
import { Dialog } from "./dialog.js";
import { button, element } from "./dom.js";

export interface MarkerListTarget {
  onGo(marker: Marker): void;
  onNote(marker: Marker, text: string): void;
  onRemove(marker: Marker): void;
  onSave(name: string): void;
  onForget(set: SavedMarkers): void;
  onLoad(set: SavedMarkers): void;
  /** Compare with a set; null stops. */
  onCompare(set: SavedMarkers | null): void;
}

/** What the list shows. */
export interface MarkerListContent {
  readonly markers: readonly Marker[];
  readonly sets: readonly SavedMarkers[];
  readonly canSave: boolean;
  readonly compared: SavedMarkers | null;
  /** How much later each marker comes than its counterpart. */
  readonly laterNs: ReadonlyMap<Marker, number>;
}

export class MarkerList extends Dialog {
  private readonly body = element("div", "");
  private readonly message = element("div", "nt-message", { role: "status" });
  private readonly name = element("input", "nt-marker-name", { label: "Name for the markers" });

  constructor(private readonly target: MarkerListTarget) {
    super("nt-markers", "Markers");
    this.name.placeholder = "Name";
    this.name.maxLength = 80;
    const close = button("nt-button", "✕", "Close the markers", () => this.toggle());
    const head = element("div", "nt-panel-head", {}, [element("h3", "", { text: "Markers" }), close]);
    this.root.append(head, this.body, this.message);
  }

  /** Say what came of something. */
  say(text: string): void {
    this.message.textContent = text;
  }

  show(content: MarkerListContent): void {
    const focused = this.body.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    this.body.replaceChildren(...this.table(content), ...(content.canSave ? [this.saving(content)] : []), ...this.sets(content));
    if (focused) this.body.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  private table({ markers, compared, laterNs }: MarkerListContent): readonly Node[] {
    if (markers.length === 0) return [element("p", "", { text: "No markers. M puts one at the pointer, T writes a note." })];
    const columns = ["Note", "Time", "Since the one before", ...(compared ? [`Later than in ${compared.name}`] : []), ""];
    const ordered = inOrder(markers);
    const rows = ordered.map((marker, place) => this.row(marker, place, ordered[place - 1], compared ? (laterNs.get(marker) ?? null) : undefined));
    const head = element("tr", "", {}, columns.map((text) => element("th", "", { text })));
    return [element("table", "", {}, [element("thead", "", {}, [head]), element("tbody", "", {}, rows)])];
  }

  private row(marker: Marker, place: number, before: Marker | undefined, laterNs: number | null | undefined): HTMLElement {
    const name = marker.text || `Marker ${place + 1}`;
    const note = element("input", "", { label: `Note of marker ${place + 1}` });
    note.value = marker.text;
    note.maxLength = 80;
    note.placeholder = "Note";
    note.addEventListener("change", () => this.target.onNote(marker, note.value.trim()));
    const time = exactText(marker.timeNs);
    const at = button("nt-link", time, `${time}: go to ${name}`, () => this.target.onGo(marker));
    const cells: (Node | string)[] = [note, at, before ? durationText(marker.timeNs - before.timeNs) : ""];
    if (laterNs !== undefined) cells.push(laterNs === null ? "–" : signedText(laterNs));
    cells.push(button("nt-button", "✕", `Remove ${name}`, () => this.target.onRemove(marker)));
    return element("tr", "", {}, cells.map((cell, column) => element("td", column > 1 ? "nt-number" : "", {}, [cell])));
  }

  private saving({ markers }: MarkerListContent): HTMLElement {
    const save = button("nt-button", "Save", "Save the markers", () => this.target.onSave(this.name.value));
    save.disabled = markers.length === 0;
    return element("div", "nt-saving", {}, [this.name, save]);
  }

  private sets({ sets, compared, canSave }: MarkerListContent): readonly Node[] {
    if (sets.length === 0) return [];
    const rows = sets.map((set) => {
      const name = set.isOwn ? set.name : `${set.name} (${set.profile})`;
      const isCompared = compared?.name === set.name && compared.profile === set.profile && compared.isOwn === set.isOwn;
      const compare = button("nt-button", "Compare", `Compare with ${name}`, () => this.target.onCompare(isCompared ? null : set));
      compare.setAttribute("aria-pressed", String(isCompared));
      const ways = [button("nt-button", "Load", `Load ${name}`, () => this.target.onLoad(set)), compare];
      if (canSave && set.isOwn) ways.push(button("nt-button", "Delete", `Delete ${name}`, () => this.target.onForget(set)));
      return element("tr", "", {}, [element("td", "", { text: name }), element("td", "nt-number", { text: String(set.markers.length) }), element("td", "", {}, ways)]);
    });
    return [element("h3", "", { text: "Saved" }), element("table", "", {}, [element("tbody", "", {}, rows)])];
  }
}
