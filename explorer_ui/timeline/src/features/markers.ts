/** Markers: times that the user pins down, to see how far they are apart. */

import type { Core } from "../core.js";

/** A marker so near is the one that is meant. */
const MARKER_PIXELS = 6;

/** Put a marker at a time, or take away the one that is there; without a time, at the chosen span or in the middle. */
export function toggleMarker(core: Core, atNs: number | null): void {
  const { scale, width } = core.viewport;
  const { markers, span } = core.view;
  const timeNs = Math.round(atNs ?? span?.startNs ?? scale.toNs(width / 2));
  const left = markers.filter((marker) => Math.abs(marker.timeNs - timeNs) > MARKER_PIXELS * scale.nsPerPixel);
  const isNew = left.length === markers.length;
  core.update({ markers: isNew ? [...left, { timeNs, text: "" }] : left });
}
