/** Markers of another set beside those of the view: how much later each comes, counted from the first that both have. */

import type { Marker } from "./view_state.js";

export interface ComparedMarker {
  /** Where it stands on this profile's axis: the first one that both have stands in one place. */
  readonly timeNs: number;
  /** Its note, or its place among the others. */
  readonly text: string;
  /** The marker of the view that it is compared with. */
  readonly own: Marker | null;
  /** How much later the view's own comes; null without one. */
  readonly laterNs: number | null;
}

/**
 * Compare markers by their notes; those without a counterpart by note, by their order.
 *
 * @param own Markers of the view.
 * @param other Those of the other set.
 */
export function comparedMarkers(own: readonly Marker[], other: readonly Marker[]): readonly ComparedMarker[] {
  const [ours, theirs] = [inOrder(own), inOrder(other)];
  const pairs = paired(ours, theirs);
  const first = theirs.find((marker) => pairs.has(marker));
  const shiftNs = first ? pairs.get(first)!.timeNs - first.timeNs : 0;
  return theirs.map((marker, place) => {
    const counterpart = pairs.get(marker) ?? null;
    const timeNs = marker.timeNs + shiftNs;
    return { timeNs, text: marker.text || String(place + 1), own: counterpart, laterNs: counterpart && counterpart.timeNs - timeNs };
  });
}

export function inOrder(markers: readonly Marker[]): readonly Marker[] {
  return [...markers].sort((one, another) => one.timeNs - another.timeNs);
}

/** The counterpart of each of the other markers, which stays in order among those without notes. */
function paired(ours: readonly Marker[], theirs: readonly Marker[]): ReadonlyMap<Marker, Marker> {
  const pairs = new Map<Marker, Marker>();
  const left = new Set(ours);
  const pair = (marker: Marker, own: Marker | undefined): void => {
    if (!own) return;
    pairs.set(marker, own);
    left.delete(own);
  };
  for (const marker of theirs) {
    if (marker.text) pair(marker, ours.find((own) => left.has(own) && own.text === marker.text));
  }
  for (const marker of theirs) {
    if (!pairs.has(marker)) pair(marker, ours.find((own) => left.has(own) && (!own.text || !marker.text)));
  }
  return pairs;
}
