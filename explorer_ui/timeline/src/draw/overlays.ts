/** Draws what lies on top of the spans: the chosen one, the range, hits, markers and dependencies. */

import { lengthOf, type TimeRange } from "../view/time_range.js";
import type { TimeScale } from "../view/time_scale.js";
import { durationText, signedText } from "../view/time_text.js";
import type { ComparedMarker } from "../view/compared_markers.js";
import type { DrawnRow, FrameInput } from "./frame.js";
import { spanBox } from "./frame.js";
import type { Theme } from "./theme.js";

/** A span somewhere on the timeline. */
export interface SpanMark {
  readonly track: string;
  /** -1 where it is not known. */
  readonly depth: number;
  readonly startNs: number;
  readonly durationNs: number;
}

/** One span waited for another. */
export interface Dependency {
  readonly from: SpanMark;
  readonly to: SpanMark;
}

export interface Overlays {
  readonly chosen: SpanMark | null;
  readonly hovered: SpanMark | null;
  readonly hits: readonly SpanMark[];
  /** The hit at which the user is; -1 for none. */
  readonly hit: number;
  readonly dependencies: readonly Dependency[];
  readonly dragged: TimeRange | null;
  /** What the ruler measures; its end may lie before its start. */
  readonly measured: TimeRange | null;
  /** Markers of another set beside those of the view. */
  readonly compared: readonly ComparedMarker[];
}

export const NO_OVERLAYS: Overlays = {
  chosen: null, hovered: null, hits: [], hit: -1, dependencies: [], dragged: null, measured: null, compared: [],
};

const MOST_MARKS = 2000;
const DASH = 4;

/** Draw onto rows that stand between two heights. */
export function drawOverlays(
  pen: CanvasRenderingContext2D,
  input: FrameInput,
  rows: readonly DrawnRow[],
  top: number,
  bottom: number,
): void {
  const { scale, theme, overlays } = input;
  const byTrack = new Map(rows.map((row) => [row.row.track.id, row]));
  drawHits(pen, input, byTrack);
  if (overlays.hovered) outline(pen, overlays.hovered, byTrack, scale, theme.text, 1);
  if (overlays.chosen) outline(pen, overlays.chosen, byTrack, scale, theme.accent, 2.5);
  drawDependencies(pen, overlays.dependencies, byTrack, scale, theme);
  const range = overlays.dragged ?? input.view.selection;
  if (range) drawRange(pen, range, scale, theme, top, bottom);
  if (overlays.measured) drawMeasured(pen, overlays.measured, scale, theme, top, bottom);
  for (const marker of input.view.markers) {
    const x = Math.round(scale.toX(marker.timeNs));
    if (x < -1 || x > scale.width) continue;
    pen.fillStyle = theme.mark;
    pen.fillRect(x, top, 1, bottom - top);
  }
  drawCompared(pen, overlays.compared, scale, theme, top, bottom);
}

/** Dashed lines where the markers of another set stand, and what lies between them and the view's own. */
function drawCompared(
  pen: CanvasRenderingContext2D, compared: readonly ComparedMarker[], scale: TimeScale, theme: Theme, top: number, bottom: number,
): void {
  for (const { timeNs, own } of compared) {
    const x = Math.round(scale.toX(timeNs));
    const to = own ? Math.round(scale.toX(own.timeNs)) : x;
    if (Math.max(x, to) < 0 || Math.min(x, to) > scale.width) continue;
    pen.fillStyle = theme.mark;
    pen.globalAlpha = 0.12;
    pen.fillRect(Math.max(Math.min(x, to), 0), top, Math.min(Math.abs(to - x), scale.width), bottom - top);
    pen.globalAlpha = 1;
    for (let y = top; y < bottom; y += 2 * DASH) pen.fillRect(x, y, 1, Math.min(DASH, bottom - y));
  }
}

function drawRange(pen: CanvasRenderingContext2D, range: TimeRange, scale: TimeScale, theme: Theme, top: number, bottom: number): void {
  const from = Math.max(scale.toX(range.startNs), -2);
  const to = Math.min(scale.toX(range.endNs), scale.width + 2);
  if (to < 0 || from > scale.width) return;
  pen.globalAlpha = 0.13;
  pen.fillStyle = theme.accent;
  pen.fillRect(from, top, Math.max(to - from, 1), bottom - top);
  pen.globalAlpha = 1;
  pen.fillRect(Math.round(from), top, 1, bottom - top);
  pen.fillRect(Math.round(to) - 1, top, 1, bottom - top);
}

function drawMeasured(pen: CanvasRenderingContext2D, { startNs, endNs }: TimeRange, scale: TimeScale, theme: Theme, top: number, bottom: number): void {
  const middle = top + (bottom - top) / 2;
  pen.fillStyle = theme.text;
  for (const timeNs of [startNs, endNs]) pen.fillRect(Math.round(scale.toX(timeNs)), top, 1, bottom - top);
  const [from, to] = [scale.toX(Math.min(startNs, endNs)), scale.toX(Math.max(startNs, endNs))];
  pen.fillRect(from, middle, to - from, 1);
  pen.font = `600 12px ${theme.font}`;
  pen.textBaseline = "middle";
  const text = durationText(Math.abs(endNs - startNs));
  const width = pen.measureText(text).width + 12;
  const left = Math.min(Math.max((from + to - width) / 2, 0), scale.width - width);
  pen.fillRect(left, middle - 10, width, 20);
  pen.fillStyle = theme.background;
  pen.fillText(text, left + 6, middle + 0.5);
}

function drawHits(pen: CanvasRenderingContext2D, input: FrameInput, byTrack: ReadonlyMap<string, DrawnRow>): void {
  const { scale, theme, overlays } = input;
  let drawn = 0;
  pen.strokeStyle = theme.mark;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const hit of overlays.hits) {
    const row = byTrack.get(hit.track);
    const box = row && spanBox(row, Math.max(hit.depth, 0), hit.startNs, hit.durationNs, scale);
    if (!box) continue;
    pen.rect(box.left, box.top + 0.5, box.width, box.height - 2);
    drawn += 1;
    if (drawn > MOST_MARKS) break;
  }
  pen.stroke();
  const current = overlays.hits[overlays.hit];
  if (current) outline(pen, current, byTrack, scale, theme.mark, 3);
}

function outline(
  pen: CanvasRenderingContext2D,
  mark: SpanMark,
  byTrack: ReadonlyMap<string, DrawnRow>,
  scale: TimeScale,
  colour: string,
  width: number,
): void {
  const row = byTrack.get(mark.track);
  const box = row && spanBox(row, Math.max(mark.depth, 0), mark.startNs, mark.durationNs, scale);
  if (!box) return;
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height);
}

/** Lines from the end of what was waited for to the start of what waited. */
function drawDependencies(
  pen: CanvasRenderingContext2D,
  dependencies: readonly Dependency[],
  byTrack: ReadonlyMap<string, DrawnRow>,
  scale: TimeScale,
  theme: Theme,
): void {
  if (dependencies.length === 0) return;
  pen.strokeStyle = theme.accent;
  pen.fillStyle = theme.accent;
  pen.lineWidth = 1.5;
  for (const { from, to } of dependencies) {
    const [rowFrom, rowTo] = [byTrack.get(from.track), byTrack.get(to.track)];
    if (!rowFrom || !rowTo) continue;
    const [x0, x1] = [scale.toX(from.startNs + from.durationNs), scale.toX(to.startNs)];
    if ((x0 < 0 && x1 < 0) || (x0 > scale.width && x1 > scale.width)) continue;
    const [y0, y1] = [middleOf(rowFrom, from), middleOf(rowTo, to)];
    const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 12), 80);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - 6, y1 - 3.5);
    pen.lineTo(x1 - 6, y1 + 3.5);
    pen.fill();
  }
}

function middleOf(drawn: DrawnRow, mark: SpanMark): number {
  const box = spanBox(drawn, Math.max(mark.depth, 0), 0, 0, MIDDLE);
  return box ? box.top + box.height / 2 : drawn.top + drawn.row.height - 4;
}

/** A scale on which time 0 is always in sight: only heights are asked for. */
const MIDDLE = { width: 1, range: { startNs: 0, endNs: 1 }, nsPerPixel: 1, toX: () => 0, toNs: () => 0 } as unknown as TimeScale;

/** Flags of markers and the length of the chosen range, in the ruler. */
export function drawRulerMarks(pen: CanvasRenderingContext2D, input: FrameInput, height: number): void {
  const { scale, theme, view, overlays } = input;
  pen.font = `600 11px ${theme.font}`;
  pen.textBaseline = "middle";
  const sorted = [...view.markers].sort((one, other) => one.timeNs - other.timeNs);
  sorted.forEach((marker, place) => {
    const x = Math.round(scale.toX(marker.timeNs));
    if (x < -200 || x > scale.width) return;
    const before = sorted[place - 1];
    const apart = before ? ` +${durationText(marker.timeNs - before.timeNs)}` : "";
    flag(pen, x, `${marker.text || place + 1}${apart}`, theme, height);
  });
  for (const one of overlays.compared) comparedFlag(pen, one, scale, theme, height);
  for (const hit of overlays.hits) {
    const x = Math.round(scale.toX(hit.startNs));
    if (x < 0 || x > scale.width) continue;
    pen.fillStyle = theme.mark;
    pen.fillRect(x, height - 5, 1, 5);
  }
  const range = overlays.dragged ?? view.selection;
  if (range) rangeLength(pen, range, scale, theme, height);
}

function flag(pen: CanvasRenderingContext2D, x: number, text: string, theme: Theme, height: number): void {
  const width = pen.measureText(text).width + 8;
  pen.fillStyle = theme.mark;
  pen.fillRect(x, 2, width, 15);
  pen.fillRect(x, 2, 1, height - 2);
  pen.fillStyle = theme.background;
  pen.fillText(text, x + 4, 10);
}

/** A framed flag below the others: the note, and how much later the view's own marker comes. */
function comparedFlag(pen: CanvasRenderingContext2D, one: ComparedMarker, scale: TimeScale, theme: Theme, height: number): void {
  const x = Math.round(scale.toX(one.timeNs));
  if (x < -200 || x > scale.width) return;
  const text = one.laterNs ? `${one.text} ${signedText(one.laterNs)}` : one.text;
  const width = pen.measureText(text).width + 8;
  pen.fillStyle = theme.background;
  pen.fillRect(x, height - 14, width, 13);
  pen.strokeStyle = theme.mark;
  pen.lineWidth = 1;
  pen.strokeRect(x + 0.5, height - 13.5, width - 1, 12);
  pen.fillStyle = theme.text;
  pen.fillText(text, x + 4, height - 7);
}

function rangeLength(pen: CanvasRenderingContext2D, range: TimeRange, scale: TimeScale, theme: Theme, height: number): void {
  const [from, to] = [Math.max(scale.toX(range.startNs), 0), Math.min(scale.toX(range.endNs), scale.width)];
  if (to < 0 || from > scale.width) return;
  const text = durationText(lengthOf(range));
  const width = pen.measureText(text).width + 10;
  const middle = Math.min(Math.max((from + to) / 2, width / 2), scale.width - width / 2);
  pen.fillStyle = theme.accent;
  pen.fillRect(from, height - 4, Math.max(to - from, 1), 3);
  pen.fillRect(middle - width / 2, 4, width, 16);
  pen.fillStyle = theme.background;
  pen.textAlign = "center";
  pen.fillText(text, middle, 12.5);
  pen.textAlign = "left";
}
