/** What a painter can do. There are two: WebGL2, and a rasteriser of our own on a 2D canvas. */

import type { Rgb } from "./palette.js";
import type { Shapes } from "./shapes.js";

/** Where the shapes of one chunk go; pixels are CSS pixels of the plot. */
export interface Strip {
  readonly shapes: Shapes;
  /** Pixel of the tile's start, and pixels per bucket. */
  readonly originX: number;
  readonly bucketPixels: number;
  /** Shapes are cut to these pixels. */
  readonly clipLeft: number;
  readonly clipRight: number;
  /** Top of the first depth. */
  readonly top: number;
  readonly fullRows: number;
  readonly rowHeight: number;
  readonly thinRows: number;
  readonly thinHeight: number;
  readonly ink: Ink;
}

/** Which colours a strip has: its own, faint ones, of what is emphasised, of what got slower or faster, of findings and warnings. */
export type Ink = "plain" | "faint" | "counter" | "strong" | "delta" | "band";
export const INKS: readonly Ink[] = ["plain", "faint", "counter", "strong", "delta", "band"];

/** Colours by ink and slot: of solid parts and of tints. */
export interface InkTable {
  readonly background: Rgb;
  readonly solid: Readonly<Record<Ink, readonly Rgb[]>>;
  readonly tint: Readonly<Record<Ink, readonly Rgb[]>>;
}

export interface Painter {
  readonly kind: "webgl2" | "canvas2d";
  /** The elements to put into the page, lowest first. */
  readonly elements: readonly HTMLCanvasElement[];
  /** For text and lines on top; cleared by `begin`, to be used after `end`. */
  readonly pen: CanvasRenderingContext2D;
  resize(width: number, height: number, ratio: number): void;
  setInks(inks: InkTable): void;
  /** Begin a frame: everything is background. */
  begin(): void;
  /** Cut what follows to some heights. */
  region(top: number, bottom: number): void;
  fill(left: number, top: number, width: number, height: number, colour: Rgb): void;
  strip(strip: Strip): void;
  /** Show the frame. */
  end(): void;
  /** Free what is held of shapes that are no longer used. */
  release(shapes: Shapes): void;
  destroy(): void;
}

/** Left and right pixel of a shape, cut and snapped; at least a pixel wide. Null if it is out of sight. */
export function snapped(left: number, right: number, clipLeft: number, clipRight: number): readonly [number, number] | null {
  if (right <= clipLeft || left >= clipRight) return null;
  const from = Math.round(Math.max(left, clipLeft));
  const to = Math.round(Math.min(right, clipRight));
  return [from, Math.max(to, from + 1)];
}

export function newCanvas(className: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.className = className;
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

/** Give a canvas a size in CSS pixels. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  canvas.width = Math.max(Math.round(width * ratio), 1);
  canvas.height = Math.max(Math.round(height * ratio), 1);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
