/** The whole profile in one strip, with a window that shows and moves what is in sight. */

import { newCanvas, sizeCanvas } from "../draw/painter.js";
import type { Theme } from "../draw/theme.js";
import { lengthOf, moved, ordered, type TimeRange } from "../view/time_range.js";
import { element } from "./dom.js";
import { HEADER_WIDTH } from "./stylesheet.js";

export const MINIMAP_HEIGHT = 44;
const BAND = 6;
/** Pixels that the window has at least, so that it can be taken hold of. */
const MINIMUM = 4;

/** Busy share of one line of the map, by column, 0 to 1. */
export interface MapLine {
  readonly colour: string;
  readonly shares: Float32Array;
}

export class Minimap {
  readonly root = element("div", "nt-overview", { label: "Overview of the whole profile", role: "group" });
  private readonly canvas = newCanvas("");
  private readonly left = element("div", "nt-overview-shade");
  private readonly right = element("div", "nt-overview-shade");
  private readonly frame = element("div", "nt-overview-window");
  private readonly edges = [element("div", "nt-overview-edge"), element("div", "nt-overview-edge")] as const;
  private bounds: TimeRange = { startNs: 0, endNs: 1 };
  private width = 1;
  private drag: { kind: "move" | "choose"; fromNs: number; range: TimeRange } | null = null;

  constructor(
    private readonly onRange: (range: TimeRange) => void,
    private range: TimeRange,
  ) {
    this.root.append(this.canvas, this.left, this.right, this.frame, ...this.edges);
    this.canvas.style.left = `${HEADER_WIDTH}px`;
    this.root.addEventListener("pointerdown", (event) => this.down(event));
    this.root.addEventListener("pointermove", (event) => this.move(event));
    this.root.addEventListener("pointerup", () => (this.drag = null));
    this.root.addEventListener("pointercancel", () => (this.drag = null));
  }

  /** Columns that lines have. */
  get columns(): number {
    return Math.max(Math.floor(this.width), 1);
  }

  resize(width: number, ratio: number): void {
    this.width = width;
    sizeCanvas(this.canvas, width, MINIMAP_HEIGHT - 1, ratio);
    this.canvas.getContext("2d")?.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** Draw the lines below each other, and marks on top of them. */
  draw(bounds: TimeRange, lines: readonly MapLine[], marks: readonly number[], theme: Theme): void {
    this.bounds = bounds;
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    pen.clearRect(0, 0, this.width, MINIMAP_HEIGHT);
    const height = Math.max((MINIMAP_HEIGHT - 2 * BAND) / Math.max(lines.length, 1), 1);
    lines.forEach((line, place) => {
      const bottom = BAND + (place + 1) * height;
      pen.fillStyle = line.colour;
      pen.beginPath();
      line.shares.forEach((share, x) => {
        if (share > 0) pen.rect(x, bottom - Math.max(share * (height - 1), 1), 1, Math.max(share * (height - 1), 1));
      });
      pen.fill();
    });
    pen.fillStyle = theme.mark;
    for (const timeNs of marks) pen.fillRect(Math.round(this.toX(timeNs)), 0, 1, BAND);
    this.show(this.range);
  }

  /** Show which range is in sight. */
  show(range: TimeRange): void {
    this.range = range;
    const from = Math.min(Math.max(this.toX(range.startNs), 0), this.width);
    const to = Math.min(Math.max(this.toX(range.endNs), from), this.width);
    // Transforms only: anything else would make the page lay itself out in every frame.
    const place = (part: HTMLElement, x: number, width: number): void => {
      part.style.transform = `translateX(${HEADER_WIDTH + x}px) scaleX(${width})`;
    };
    place(this.frame, Math.min(from, this.width - MINIMUM), Math.max(to - from, MINIMUM));
    place(this.edges[0], Math.min(from, this.width - MINIMUM), 2);
    place(this.edges[1], Math.max(to - 2, from + 2), 2);
    place(this.left, 0, from);
    place(this.right, to, Math.max(this.width - to, 0));
  }

  private toX(timeNs: number): number {
    return ((timeNs - this.bounds.startNs) / lengthOf(this.bounds)) * this.width;
  }

  private timeAt(event: PointerEvent): number {
    const x = event.clientX - this.root.getBoundingClientRect().left - HEADER_WIDTH;
    return this.bounds.startNs + (Math.min(Math.max(x, 0), this.width) / this.width) * lengthOf(this.bounds);
  }

  private down(event: PointerEvent): void {
    const fromNs = this.timeAt(event);
    this.root.setPointerCapture(event.pointerId);
    const isInside = event.target === this.frame;
    this.drag = { kind: isInside ? "move" : "choose", fromNs, range: this.range };
    if (!isInside) this.onRange(moved(this.range, fromNs - (this.range.startNs + this.range.endNs) / 2));
  }

  private move(event: PointerEvent): void {
    if (!this.drag) return;
    const timeNs = this.timeAt(event);
    const { kind, fromNs, range } = this.drag;
    if (kind === "move") this.onRange(moved(range, timeNs - fromNs));
    else if (Math.abs(timeNs - fromNs) > (lengthOf(this.bounds) / this.width) * 6) this.onRange(ordered(fromNs, timeNs));
  }
}
