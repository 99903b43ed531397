/** Markers: times that the user pins down, to see how far they are apart, and notes at them. */

import type { Core } from "../core.js";
import { element } from "../panels/dom.js";
import type { Marker } from "../view/view_state.js";

/** A marker so near is the one that is meant. */
const MARKER_PIXELS = 6;
const LONGEST_NOTE = 80;

/** Put a marker at a time, or take away the one that is there. */
export function toggledMarker(markers: readonly Marker[], timeNs: number, nearNs: number): readonly Marker[] {
  const left = markers.filter((marker) => Math.abs(marker.timeNs - timeNs) > nearNs);
  return left.length === markers.length ? [...left, { timeNs, text: "" }] : left;
}

/** Write a note at the marker that is near a time; where there is none, one is put there. */
export function notedMarker(markers: readonly Marker[], timeNs: number, nearNs: number, text: string): readonly Marker[] {
  const near = nearest(markers, timeNs, nearNs);
  if (!near) return [...markers, { timeNs, text }];
  return markers.map((marker) => (marker === near ? { ...marker, text } : marker));
}

/** The marker that is meant by a time. */
export function nearest(markers: readonly Marker[], timeNs: number, nearNs: number): Marker | undefined {
  const near = markers.filter((marker) => Math.abs(marker.timeNs - timeNs) <= nearNs);
  return near.sort((one, other) => Math.abs(one.timeNs - timeNs) - Math.abs(other.timeNs - timeNs))[0];
}

export class Markers {
  /** Where a note is written; hidden otherwise. */
  readonly field = element("input", "nt-note", { label: "Note at the marker; Enter keeps it" });
  private atNs = 0;

  /**
   * @param left Pixels from the field's frame to the plot.
   * @param onDone Called when the note is written, to give the focus back.
   */
  constructor(
    private readonly core: Core,
    private readonly left: () => number,
    private readonly onDone: () => void,
  ) {
    this.field.hidden = true;
    this.field.maxLength = LONGEST_NOTE;
    this.field.placeholder = "Note";
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("blur", () => (this.field.hidden = true));
    core.onChange((changed) => {
      if (changed.has("range")) this.field.hidden = true;
    });
  }

  /** Put a marker at a time, or take it away; without a time, at the chosen span or in the middle. */
  toggle(atNs: number | null): void {
    this.core.update({ markers: toggledMarker(this.core.view.markers, this.meant(atNs), this.nearNs) });
  }

  /** Ask for a note at a time. */
  write(atNs: number | null): void {
    const { scale } = this.core.viewport;
    const timeNs = this.meant(atNs);
    const near = nearest(this.core.view.markers, timeNs, this.nearNs);
    this.atNs = near?.timeNs ?? timeNs;
    this.field.value = near?.text ?? "";
    this.field.style.left = `${this.left() + Math.min(Math.max(scale.toX(this.atNs), 0), scale.width - 170)}px`;
    this.field.hidden = false;
    this.field.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Enter") {
      this.core.update({ markers: notedMarker(this.core.view.markers, this.atNs, this.nearNs, this.field.value.trim()) });
    }
    this.field.hidden = true;
    this.onDone();
  }

  private get nearNs(): number {
    return MARKER_PIXELS * this.core.viewport.scale.nsPerPixel;
  }

  private meant(atNs: number | null): number {
    const { scale, width } = this.core.viewport;
    return Math.round(atNs ?? this.core.view.span?.startNs ?? scale.toNs(width / 2));
  }
}
