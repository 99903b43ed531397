/** Draws the ruler above the plot and the lines below its ticks. */

import { ROW_PADDING } from "../view/layout.js";
import type { TimeScale } from "../view/time_scale.js";
import { axisBase, exactText, tickText, ticks } from "../view/time_text.js";
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
  const baseNs = axisBase(scale.range.startNs, scale.range.endNs, stepNs);
  const left = baseNs > 0 ? drawBase(pen, baseNs, height, theme) : 0;
  for (const [x, timeNs] of places) {
    pen.fillStyle = theme.border;
    pen.fillRect(Math.round(x), height - 9, 1, 9);
    if (x < left) continue;
    pen.fillStyle = theme.mutedText;
    const text = baseNs > 0 ? `+${tickText(timeNs - baseNs, stepNs)}` : tickText(timeNs, stepNs);
    const at = Math.round(x) + ROW_PADDING + 1;
    if (at + pen.measureText(text).width <= scale.width) pen.fillText(text, at, height / 2 - 1);
  }
}

/** Write what ticks are counted from; the pixel at which it ends. */
function drawBase(pen: CanvasRenderingContext2D, baseNs: number, height: number, theme: Theme): number {
  const text = exactText(baseNs).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
  pen.fillStyle = theme.text;
  pen.fillText(text, ROW_PADDING, height / 2 - 1);
  return pen.measureText(text).width + 2 * ROW_PADDING;
}
