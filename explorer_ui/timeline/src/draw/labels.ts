/** Writes names on spans that have room for them. */

import type { NameTable } from "../data/names.js";
import { depthPlace, type TrackRow } from "../view/layout.js";
import type { Placed } from "../view/scene.js";
import type { TimeScale } from "../view/time_scale.js";
import { inkOn, PALETTES, parseColour } from "./palette.js";
import type { Theme } from "./theme.js";

/** Narrower spans have no text. */
export const NARROWEST = 22;
/** Texts of one frame; more cannot be read, and cost time. */
const MOST = 900;
const LOWEST_ROW = 12;

export class LabelWriter {
  private readonly widths = new Map<string, number>();
  private inks: readonly string[] = [];
  private theme: Theme | null = null;
  private dotsWidth = 10;
  private written = 0;

  /** Begin a frame. */
  begin(pen: CanvasRenderingContext2D, theme: Theme): void {
    if (theme !== this.theme) {
      this.theme = theme;
      this.inks = PALETTES[theme.palette].map((colour) => inkOn(parseColour(colour)));
      this.widths.clear();
    }
    pen.font = `11px ${theme.font}`;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    this.dotsWidth = pen.measureText("…").width;
    this.written = 0;
    if (this.widths.size > 20_000) this.widths.clear();
  }

  /** Write the names of a row's chunks; `top` is the pixel of the row's top. */
  write(
    pen: CanvasRenderingContext2D,
    row: TrackRow,
    placed: readonly Placed[],
    top: number,
    scale: TimeScale,
    names: NameTable,
    faded: boolean,
  ): void {
    let lastInk = "";
    for (const part of placed) {
      const chunk = part.chunk;
      if (chunk.kind !== "spans" || chunk.wide.length === 0) continue;
      const origin = scale.toX(part.startNs);
      const perNs = 1 / scale.nsPerPixel;
      for (const at of chunk.wide) {
        const depth = chunk.depth[at]!;
        if (depth >= row.fullRows || this.written >= MOST) break;
        const begin = origin + chunk.start[at]! * perNs;
        const left = Math.max(begin, 0);
        if (left < part.clipLeft || left >= part.clipRight) continue; // the chunk in which it begins writes it
        const right = Math.min(begin + chunk.duration[at]! * perNs, scale.width);
        if (right - left < NARROWEST) continue;
        const place = depthPlace(row, depth);
        if (place.height < LOWEST_ROW) continue;
        const text = this.fitted(pen, names.text(chunk.name[at]!), right - left - 7);
        if (text === "") continue;
        const ink = faded ? this.theme!.text : this.inks[(chunk.shapes.looks[at]! >>> 8) & 255]!;
        if (ink !== lastInk) pen.fillStyle = lastInk = ink;
        pen.fillText(text, left + 4, top + place.top + place.height / 2);
        this.written += 1;
      }
    }
  }

  /** A text cut to a width, with dots; empty where not even a few letters fit. */
  private fitted(pen: CanvasRenderingContext2D, text: string, width: number): string {
    let full = this.widths.get(text);
    if (full === undefined) this.widths.set(text, (full = pen.measureText(text).width));
    if (full <= width) return text;
    const most = Math.floor(((width - this.dotsWidth) / full) * text.length);
    return most < 2 ? "" : `${text.slice(0, most)}…`;
  }
}
