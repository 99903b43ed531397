/** Draws the ruler above the plot and the lines below its ticks. */

import { ROW_PADDING } from "../view/layout.js";
import type { TimeScale } from "../view/time_scale.js";
import { tickText, ticks } from "../view/time_text.js";
import type { Theme } from "./theme.js";

/** Pixels at which ticks stand, and their times. */
export function tickPlaces(scale: TimeScale): { stepNs: number; places: (readonly [number, number])[] } {
  const { startNs, endNs } = scale.range;
  const { stepNs, first } = ticks(startNs, endNs, scale.nsPerPixel);
  const places: (readonly [number, number])[] = [];
  for (let number = first; number * stepNs <= endNs; number += 1) {
    places.push([scale.toX(number * stepNs), number * stepNs]);
  }
  return { stepNs, places };
}

export function drawRuler(pen: CanvasRenderingContext2D, scale: TimeScale, height: number, theme: Theme): void {
  const { stepNs, places } = tickPlaces(scale);
  pen.fillStyle = theme.surface;
  pen.fillRect(0, 0, scale.width, height);
  pen.fillStyle = theme.border;
  pen.fillRect(0, height - 1, scale.width, 1);
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (const [x, timeNs] of places) {
    pen.fillStyle = theme.border;
    pen.fillRect(Math.round(x), height - 9, 1, 9);
    pen.fillStyle = theme.mutedText;
    pen.fillText(tickText(timeNs, stepNs), Math.round(x) + ROW_PADDING + 1, height / 2 - 1);
  }
}
